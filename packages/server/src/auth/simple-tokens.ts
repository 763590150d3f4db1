import { hash } from 'node:crypto';
import type { Command, CommandResponse, Requester } from '@tenure/core';
import type { Random } from '../random/random.ts';
import { ProposalError } from '../replica/proposal-error.ts';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import type { Clock } from '../time/clock.ts';
import { every } from '../time/every.ts';
import { statusNamed } from '../transport/named-status.ts';
import { IssuedTokens } from './issued-tokens.ts';
import { isStillValid, type TokenProvider } from './token-provider.ts';

/** Limit on tokens, about 40 MB; beyond it the user with the most tokens loses one. See IssuedTokens. */
export const maxSimpleTokens = 100_000;
/** Limit on requests that wait to learn whether another server has issued their token. */
export const maxUnknownTokens = 4_096;
const sweepIntervalMs = 1_000;
/** A use so soon after the last one is not noted: a token may end this much earlier, or a tenth of its time to live. */
const useIntervalMs = 1_000;

/** As in etcd: letters, a point, and a number that says when it was issued. */
const shape = /^[A-Za-z]{16}\.\d{1,20}$/;
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const letterCount = 16;
/** Bytes from here on would make some letters more frequent. */
const fairBytes = 256 - (256 % letters.length);

interface SimpleTokensOptions {
  readonly replica: Pick<ReplicaAccess, 'state' | 'position' | 'propose' | 'linearize'>;
  readonly clock: Clock;
  readonly random: Random;
  /** A token that is not used for so long is forgotten, on each server for itself. */
  readonly ttlMs: number;
}

/**
 * etcd's simple tokens: random texts. The log tells every server of each, by its digest, and the servers keep them in
 * memory. After a restart, or where a snapshot took the place of the entry, a token is unknown and its client logs in
 * again.
 */
export class SimpleTokens implements TokenProvider {
  readonly #options: SimpleTokensOptions;
  readonly #tokens = new IssuedTokens(maxSimpleTokens);
  /** Of the tokens in the headers of calls, which are the same object for call after call. */
  readonly #digests = new WeakMap<object, string>();
  readonly #cancelSweep: () => void;
  #catchingUp = 0;

  constructor(options: SimpleTokensOptions) {
    this.#options = options;
    this.#cancelSweep = every(options.clock, sweepIntervalMs, () => this.#sweep());
  }

  /** Known tokens. */
  get size(): number {
    return this.#tokens.size;
  }

  requesterOf(token: string, metadata?: object): Requester | undefined | Promise<Requester | undefined> {
    const found = metadata && this.#digests.get(metadata);
    // A flood of other texts costs next to nothing.
    if (found === undefined && !shape.test(token)) return undefined;
    const digest = found ?? digestOf(token);
    if (found === undefined && metadata !== undefined) this.#digests.set(metadata, digest);
    return this.#tokens.get(digest) === undefined ? this.#afterCatchUp(digest) : this.#known(digest);
  }

  async issue(user: string, authRevision: number): Promise<string | undefined> {
    const { random, replica } = this.#options;
    const token = `${randomLetters(random)}.${replica.position.index}`;
    const change = { kind: 'issueToken', user, tokenDigest: digestOf(token), authRevision } as const;
    const response = await replica.propose({ kind: 'auth', change });
    if (response.kind !== 'error') return token;
    if (response.code === 'AuthOldRevision') return undefined;
    throw statusNamed(response.code);
  }

  applied(command: Command, response: CommandResponse): void {
    if (command.kind !== 'auth' || command.change.kind !== 'issueToken' || response.kind === 'error') return;
    const { user, tokenDigest, authRevision } = command.change;
    const lastUsedMs = this.#options.clock.monotonicMs();
    this.#tokens.set(tokenDigest, { issued: { user, authRevision }, lastUsedMs });
  }

  stop(): void {
    this.#cancelSweep();
    this.#tokens.clear();
  }

  #known(digest: string): Requester | undefined {
    const known = this.#tokens.get(digest);
    if (known === undefined) return undefined;
    const { issued, lastUsedMs } = known;
    const { auth } = this.#options.replica.state;
    const nowMs = this.#options.clock.monotonicMs();
    if (nowMs - lastUsedMs >= this.#options.ttlMs || !isStillValid(auth, issued)) {
      this.#tokens.delete(digest);
      return undefined;
    }
    const intervalMs = Math.min(useIntervalMs, this.#options.ttlMs / 10);
    if (nowMs - lastUsedMs >= intervalMs) this.#tokens.set(digest, { issued, lastUsedMs: nowMs });
    return { user: issued.user, authRevision: auth.revision };
  }

  /** Another server may have issued it, in an entry that this one has not applied yet. */
  #afterCatchUp(digest: string): undefined | Promise<Requester | undefined> {
    if (this.#catchingUp >= maxUnknownTokens) {
      return Promise.reject(new ProposalError('overloaded', 'too many requests with unknown tokens wait'));
    }
    const caughtUp = this.#options.replica.linearize();
    return caughtUp === undefined ? undefined : this.#lookAgain(digest, caughtUp);
  }

  async #lookAgain(digest: string, caughtUp: Promise<void>): Promise<Requester | undefined> {
    this.#catchingUp += 1;
    try {
      await caughtUp;
    } finally {
      this.#catchingUp -= 1;
    }
    return this.#known(digest);
  }

  #sweep(): void {
    this.#tokens.deleteUnused(this.#options.clock.monotonicMs() - this.#options.ttlMs);
  }
}

function digestOf(token: string): string {
  return hash('sha256', token, 'hex');
}

function randomLetters(random: Random): string {
  let text = '';
  while (text.length < letterCount) {
    for (const byte of random.bytes(2 * letterCount)) {
      if (byte < fairBytes && text.length < letterCount) text += letters.charAt(byte % letters.length);
    }
  }
  return text;
}
