import type { Requester } from '@tenure/core';

export interface IssuedToken {
  /** What it was issued for. */
  readonly issued: Requester;
  readonly lastUsedMs: number;
}

/**
 * The tokens that a server knows, by digest. Beyond the limit, the user with the most tokens loses the one that they
 * used least recently: however often some users log in, another keeps at least an equal share.
 */
export class IssuedTokens {
  readonly #maxTokens: number;
  /** In the order of their last use. */
  readonly #tokens = new Map<string, IssuedToken>();
  /** The digests of each user, in the same order. */
  readonly #ofUser = new Map<string, Set<string>>();

  constructor(maxTokens: number) {
    this.#maxTokens = maxTokens;
  }

  get size(): number {
    return this.#tokens.size;
  }

  get(digest: string): IssuedToken | undefined {
    return this.#tokens.get(digest);
  }

  /** As the token that was used last, also when it is known already. */
  set(digest: string, token: IssuedToken): void {
    this.delete(digest);
    const { user } = token.issued;
    const digests = this.#ofUser.get(user) ?? new Set();
    this.#ofUser.set(user, digests.add(digest));
    this.#tokens.set(digest, token);
    if (this.#tokens.size > this.#maxTokens) this.#drop();
  }

  delete(digest: string): void {
    const token = this.#tokens.get(digest);
    if (token === undefined) return;
    const { user } = token.issued;
    const digests = this.#ofUser.get(user);
    digests?.delete(digest);
    if (digests?.size === 0) this.#ofUser.delete(user);
    this.#tokens.delete(digest);
  }

  /** Those that were last used at `usedMs` or before. */
  deleteUnused(usedMs: number): void {
    for (const [digest, { lastUsedMs }] of this.#tokens) {
      if (lastUsedMs > usedMs) return;
      this.delete(digest);
    }
  }

  clear(): void {
    this.#tokens.clear();
    this.#ofUser.clear();
  }

  /** Looks at each user: the limit on the auth data allows some ten thousand, and a login takes far longer. */
  #drop(): void {
    let most: ReadonlySet<string> = new Set();
    for (const digests of this.#ofUser.values()) if (digests.size > most.size) most = digests;
    for (const oldest of most) return this.delete(oldest);
  }
}
