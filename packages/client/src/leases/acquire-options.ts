import type { BackendLimits } from '../backend/lease-backend.ts';
import { UsageError } from '../errors/usage-error.ts';
import type { Signal } from '../time/signal.ts';

/** How long to wait for somebody else: not at all, as long as a lease lasts, for ever, or so many milliseconds. */
export type WaitMode = 'none' | 'ttl' | 'forever' | number;

export interface AcquireOptions {
  /** How long the lease lasts after its last renewal, in milliseconds; by default the manager's. */
  readonly ttlMs?: number;
  /** By default `acquire` waits for ever, and a handle of `requestLease` not at all. 0 is the same as `none`. */
  readonly wait?: WaitMode;
  /** Ends the waiting, and takes the place in the line back. What is held already does not end by it. */
  readonly signal?: Signal | undefined;
  /** By default true. Without it the lease ends after `ttlMs` unless `renew()` is called. */
  readonly autoRenew?: boolean;
  /**
   * Nobody else gets it before so many milliseconds have passed since it was acquired, also when it is released
   * sooner: for tasks so short that another server's clock might not have come to their time yet. While it is held it
   * lasts by its renewals only, so a process that dies takes this promise along when its time to live is shorter.
   */
  readonly holdAtLeastMs?: number;
  /** Text that everybody can read with `inspect`. */
  readonly data?: string;
}

/** What was asked for, with nothing left open. */
export interface Terms {
  readonly ttlMs: number;
  /** Infinity for ever, 0 for not at all. */
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

/** Throws a UsageError for whatever can't be right, before anything is done. */
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

/** The time to live, in milliseconds, if the backend keeps it. */
export function checkTtl(ttlMs: number, { minTtlMs, maxTtlMs }: BackendLimits): number {
  if (isCount(ttlMs) && ttlMs >= minTtlMs && ttlMs <= maxTtlMs) return ttlMs;
  throw new UsageError(`ttlMs must be a whole number from ${minTtlMs} to ${maxTtlMs}, not ${ttlMs}`);
}

/** `line` is what the backend calls it, which may be longer than what the user does. */
export function checkName(name: string, line: string, { maxNameBytes }: BackendLimits): void {
  if (typeof name !== 'string' || name === '') throw new UsageError('a name must be a string that is not empty');
  if (controlOrLone.test(name)) throw new UsageError('a name must be of characters that can be shown');
  const extraBytes = line.length - name.length;
  if (encoder.encode(line).length > maxNameBytes) {
    throw new UsageError(`a name must have ${maxNameBytes - extraBytes} bytes at most: ${name.slice(0, 50)}...`);
  }
}

export function checkData(data: string, { maxDataBytes }: BackendLimits): string {
  if (typeof data !== 'string' || data.includes('\0') || loneSurrogate.test(data)) {
    throw new UsageError('what goes with a lease must be well-formed text');
  }
  if (encoder.encode(data).length <= maxDataBytes) return data;
  throw new UsageError(`what goes with a lease must have ${maxDataBytes} bytes at most`);
}

function waitMsOf(wait: WaitMode, ttlMs: number): number {
  if (wait === 'none') return 0;
  if (wait === 'ttl') return ttlMs;
  if (wait === 'forever') return Infinity;
  if (typeof wait === 'number' && wait >= 0 && wait < Infinity) return wait;
  throw new UsageError(`wait must be 'none', 'ttl', 'forever' or milliseconds of 0 and more, not ${wait}`);
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
