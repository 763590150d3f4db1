import type { BackendLimits } from '../backend/lease-backend.ts';
import { UsageError } from '../errors/usage-error.ts';
import type { Signal } from '../time/signal.ts';

/** How long to wait while the lease is held: not at all, for the TTL, forever, or for a number of milliseconds. */
export type WaitMode = 'none' | 'ttl' | 'forever' | number;

export interface AcquireOptions {
  /** How long the lease lasts after its last renewal, in milliseconds; by default the manager's. */
  readonly ttlMs?: number;
  /** By default `acquire` waits forever, and a handle of `requestLease` does not wait. 0 is the same as `none`. */
  readonly wait?: WaitMode;
  /** Ends the wait and removes the entry from the queue. It has no effect on a lease that is held already. */
  readonly signal?: Signal | undefined;
  /** By default true. Without it the lease ends after `ttlMs` unless `renew()` is called. */
  readonly autoRenew?: boolean;
  /**
   * The minimum time between this acquisition and the next one, even if the lease is released sooner. It is for short
   * scheduled tasks, where another server's clock may reach the scheduled time later. While the lease is held only
   * renewals extend it, so if the process dies and `ttlMs` is shorter, the lease becomes free after `ttlMs`.
   */
  readonly holdAtLeastMs?: number;
  /** Text that all clients can read with `inspect`. */
  readonly data?: string;
}

/** The options with all defaults filled in. */
export interface Terms {
  readonly ttlMs: number;
  /** Infinity forever, 0 for not at all. */
  readonly waitMs: number;
  readonly signal: Signal | undefined;
  readonly isAutomatic: boolean;
  readonly holdAtLeastMs: number;
  readonly data: string;
}

interface TermsDefaults {
  readonly ttlMs: number;
  readonly wait: WaitMode;
  readonly limits: BackendLimits;
}

const encoder = new TextEncoder();
const controlOrLone = /[\p{Cc}\p{Surrogate}]/u;
const loneSurrogate = /\p{Surrogate}/u;

/** Throws a UsageError for invalid options, before anything is sent. */
export function termsOf(options: AcquireOptions, defaults: TermsDefaults): Terms {
  const { limits } = defaults;
  const ttlMs = checkTtl(options.ttlMs ?? defaults.ttlMs, limits);
  const holdAtLeastMs = options.holdAtLeastMs ?? 0;
  if (!isCount(holdAtLeastMs) || holdAtLeastMs > limits.maxTtlMs) {
    throw new UsageError(`holdAtLeastMs must be a whole number from 0 to ${limits.maxTtlMs}, not ${holdAtLeastMs}`);
  }
  const isAutomatic = options.autoRenew ?? true;
  const data = checkData(options.data ?? '', limits);
  const waitMs = waitMsOf(options.wait ?? defaults.wait, ttlMs);
  return { ttlMs, waitMs, signal: options.signal, isAutomatic, holdAtLeastMs, data };
}

/** Returns the TTL in milliseconds if it is within the backend's limits. */
export function checkTtl(ttlMs: number, { minTtlMs, maxTtlMs }: BackendLimits): number {
  if (isCount(ttlMs) && ttlMs >= minTtlMs && ttlMs <= maxTtlMs) return ttlMs;
  throw new UsageError(`ttlMs must be a whole number from ${minTtlMs} to ${maxTtlMs}, not ${ttlMs}`);
}

/** `queue` is the name in the backend, which has a prefix. */
export function checkName(name: string, queue: string, { maxNameBytes }: BackendLimits): void {
  if (typeof name !== 'string' || name === '') throw new UsageError('a name must be a string that is not empty');
  if (controlOrLone.test(name)) throw new UsageError('a name must not contain control characters or lone surrogates');
  const extraBytes = queue.length - name.length;
  if (encoder.encode(queue).length > maxNameBytes) {
    throw new UsageError(`a name must have ${maxNameBytes - extraBytes} bytes at most: ${name.slice(0, 50)}...`);
  }
}

export function checkData(data: string, { maxDataBytes }: BackendLimits): string {
  if (typeof data !== 'string' || data.includes('\0') || loneSurrogate.test(data)) {
    throw new UsageError('the data of a lease must be well-formed text without null characters');
  }
  if (encoder.encode(data).length <= maxDataBytes) return data;
  throw new UsageError(`the data of a lease must have ${maxDataBytes} bytes at most`);
}

function waitMsOf(wait: WaitMode, ttlMs: number): number {
  if (wait === 'none') return 0;
  if (wait === 'ttl') return ttlMs;
  if (wait === 'forever') return Infinity;
  if (typeof wait === 'number' && wait >= 0 && wait < Infinity) return wait;
  throw new UsageError(`wait must be 'none', 'ttl', 'forever' or a number of milliseconds from 0 on, not ${wait}`);
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
