import type { Requester } from '@tenure/core';
import type { JwtSignMethod } from '../config/auth-token.ts';
import { ProposalError } from '../replica/proposal-error.ts';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import type { Clock } from '../time/clock.ts';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import type { JwtKeys } from './jwt-keys.ts';
import { isStillValid, type TokenProvider } from './token-provider.ts';

/** Limit on the length of a token; one with the claims below has some hundreds. */
export const maxJwtChars = 4_096;
/** Limit on verified tokens that are remembered, about 16 MB; the one that was used least recently goes. */
export const maxVerifiedJwts = 4_096;
/** Limit on tokens whose signatures wait to be verified, on the same threads that write the log. */
export const maxUnverifiedJwts = 256;

/** Three parts in base64url. An unsigned token has an empty third one. */
const shape = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/** What a token says. etcd has the first three. */
interface Claims {
  readonly username: string;
  /** The auth revision by which the password was checked. */
  readonly revision: number;
  /** Seconds since 1970. */
  readonly exp: number;
  /** Not valid before; Tenure issues none. */
  readonly nbf?: number;
  /** The id of the cluster, in hex. */
  readonly cluster?: string;
}

interface JwtTokensOptions {
  readonly replica: Pick<ReplicaAccess, 'state' | 'linearize'>;
  readonly clock: Clock;
  readonly keys: JwtKeys;
  readonly signMethod: JwtSignMethod;
  readonly ttlMs: number;
}

/**
 * JSON Web Tokens with etcd's claims, which every server verifies by itself, also after a restart. Only the configured
 * algorithm is accepted, whatever the header of a token says.
 *
 * Unlike etcd a token names its cluster: a restored cluster has the keys of the old one, and counts its revisions from
 * an earlier one. A token without a cluster, from an issuer of the operator, is accepted. A token without an end is
 * not, nor one from an auth revision that is still to come.
 */
export class JwtTokens implements TokenProvider {
  readonly #options: JwtTokensOptions;
  /** By text, in the order of their last use. */
  readonly #verified = new Map<string, Claims>();
  #verifying = 0;
  /** Loaded here: most servers issue simple tokens, and need not read it at their start. */
  readonly #jose = import('jose');

  constructor(options: JwtTokensOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#verified.size;
  }

  requesterOf(token: string): Requester | undefined | Promise<Requester | undefined> {
    const claims = this.#verified.get(token);
    if (claims !== undefined) {
      this.#verified.delete(token);
      if (this.#isOver(claims)) return undefined;
      this.#verified.set(token, claims);
      return this.#requesterBy(claims);
    }
    if (token.length > maxJwtChars || !shape.test(token)) return undefined;
    if (this.#verifying >= maxUnverifiedJwts) {
      return Promise.reject(new ProposalError('overloaded', 'too many tokens wait to be verified'));
    }
    return this.#afterVerification(token);
  }

  async issue(user: string, authRevision: number): Promise<string | undefined> {
    const { clock, keys, replica, signMethod, ttlMs } = this.#options;
    if (keys.signing === undefined) {
      throw new GrpcStatus(GrpcCode.unknown, 'auth: token signing attempted with verify-only key');
    }
    const claims: Claims = {
      username: user,
      revision: authRevision,
      exp: Math.floor((clock.wallMs() + ttlMs) / 1000),
      cluster: replica.state.clusterId.toString(16),
    };
    const { CompactSign } = await this.#jose;
    return new CompactSign(Buffer.from(JSON.stringify(claims)))
      .setProtectedHeader({ alg: signMethod, typ: 'JWT' })
      .sign(keys.signing);
  }

  /** Tokens are not in the log. */
  applied(): void {}

  stop(): void {
    this.#verified.clear();
  }

  async #afterVerification(token: string): Promise<Requester | undefined> {
    this.#verifying += 1;
    const claims = await this.#claimsOf(token).finally(() => (this.#verifying -= 1));
    if (claims === undefined) return undefined;
    this.#verified.set(token, claims);
    if (this.#verified.size > maxVerifiedJwts) this.#dropOldest();
    return this.#requesterBy(claims);
  }

  async #claimsOf(token: string): Promise<Claims | undefined> {
    const { keys, signMethod, replica } = this.#options;
    let payload: Uint8Array;
    try {
      const { compactVerify } = await this.#jose;
      ({ payload } = await compactVerify(token, keys.verifying, { algorithms: [signMethod] }));
    } catch {
      return undefined;
    }
    const claims = parseClaims(Buffer.from(payload).toString('utf8'));
    if (claims === undefined || this.#isOver(claims)) return undefined;
    const isOurs = claims.cluster === undefined || claims.cluster === replica.state.clusterId.toString(16);
    return isOurs ? claims : undefined;
  }

  /** A wall clock that is set back makes a token valid again, for as long as the operator's clock says so. */
  #isOver({ exp, nbf }: Claims): boolean {
    const nowMs = this.#options.clock.wallMs();
    return nowMs >= exp * 1000 || (nbf !== undefined && nowMs < nbf * 1000);
  }

  #requesterBy({ username, revision }: Claims): Requester | undefined | Promise<Requester | undefined> {
    const { replica } = this.#options;
    const requester: Requester = { user: username, authRevision: revision };
    const now = (): Requester | undefined => {
      const { auth } = replica.state;
      return revision <= auth.revision && isStillValid(auth, requester) ? requester : undefined;
    };
    if (revision <= replica.state.auth.revision) return now();
    // Another server has issued it by auth data that this one has not applied yet.
    return replica.linearize()?.then(now);
  }

  #dropOldest(): void {
    for (const oldest of this.#verified.keys()) return void this.#verified.delete(oldest);
  }
}

/** Undefined unless every claim has its type: a token that is signed may still say anything. */
function parseClaims(text: string): Claims | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof parsed !== 'object' || parsed === null) return undefined;
  const { username, revision, exp, nbf, cluster } = parsed as Readonly<Record<string, unknown>>;
  if (typeof username !== 'string' || username === '') return undefined;
  // Zero and less have another meaning in a requester.
  if (typeof revision !== 'number' || !Number.isSafeInteger(revision) || revision < 1) return undefined;
  if (typeof exp !== 'number' || !Number.isFinite(exp)) return undefined;
  if (nbf !== undefined && (typeof nbf !== 'number' || !Number.isFinite(nbf))) return undefined;
  if (cluster !== undefined && typeof cluster !== 'string') return undefined;
  return { username, revision, exp, ...(nbf !== undefined && { nbf }), ...(cluster !== undefined && { cluster }) };
}
