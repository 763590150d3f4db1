import type { NodeClock, SeededRandom } from '@tenure/test-support';
import { fromBinary } from '@bufbuild/protobuf';
import { encodeLeaseGrantRequest, encodeLeaseKeepAliveRequest, frameHeadroomBytes } from '@tenure/codec';
import { etcdserverpb } from '@tenure/protocol';
import type { ClientConnection, ClientStream } from '../world/client-connection.ts';
import { checkpointAt } from './expiry-bound.ts';
import type { LeaseChecker } from './lease-checker.ts';

export interface LeaseHolderOptions {
  readonly id: bigint;
  readonly ttlMs: number;
  readonly clock: NodeClock;
  readonly random: SeededRandom;
  readonly checker: LeaseChecker;
  /** The newest revision that any client has been told of. */
  readonly toldRevision: () => number;
  /** Connects to any of the servers. */
  readonly connect: () => ClientConnection;
}

/** A client without an answer asks another server after this time. */
const patienceMs = 400;
/** A call is given up after this time; its outcome stays unknown. */
const callLimitMs = 3_000;

/** The codes of a refusal for the user of the client, or for their permissions. */
const accessCodes: ReadonlySet<number> = new Set([3, 7, 16]);
/** Then it asks again after this time. */
const againMs = 200;

/** The requests about one lease have the same bytes: to renew it, to revoke it, and to read its time to live. */
function requestAbout(id: bigint): Uint8Array {
  return encodeLeaseKeepAliveRequest(id).subarray(frameHeadroomBytes);
}

/** A stream of renewals, and the renewals on it that have no answer, in order. */
interface RenewalStream {
  readonly stream: ClientStream;
  readonly asked: { readonly life: number; readonly sentMs: number; readonly floor: number }[];
}

/**
 * A client with one lease id: it is granted the lease, renews it for a while, and then abandons it, revokes it, or
 * revokes it and is granted a new one at once.
 */
export class LeaseHolder {
  readonly id: bigint;
  readonly ttlMs: number;
  /** Whether it still renews, as far as it knows. */
  isRenewing = false;
  lastSuccessMs = -Infinity;
  readonly #options: LeaseHolderOptions;
  /** The number of leases so far under this id: an answer about an earlier lease does not count for this one. */
  #life = 0;
  #isSettling = false;
  #connection: ClientConnection | undefined;
  #renewals: RenewalStream | undefined;
  /** When the last grant or revocation of this lease was known to have been made. */
  #grantedMs = Infinity;
  #revokedMs = Infinity;

  constructor(options: LeaseHolderOptions) {
    this.#options = options;
    this.id = options.id;
    this.ttlMs = options.ttlMs;
  }

  start(): void {
    const { clock, random } = this.#options;
    clock.after(random.between(0, 2_000), () => this.#begin());
  }

  /** From here on the client only renews a lease that it holds now, until the end. */
  settle(): void {
    this.#isSettling = true;
    // The next renewal may have been planned for the last moment.
    this.#renew(this.#life);
  }

  get #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  #begin(): void {
    if (this.#isSettling) return;
    const { clock, random } = this.#options;
    this.#life += 1;
    // A new lease may begin while an earlier one is still renewed. Only an acknowledged grant counts.
    this.isRenewing = false;
    const life = this.#life;
    this.#grantedMs = Infinity;
    this.#revokedMs = Infinity;
    const grant = encodeLeaseGrantRequest({ id: this.id, ttlSeconds: 0, ttlMs: this.ttlMs, label: '' });
    this.#call('LeaseGrant', grant.subarray(frameHeadroomBytes), () => {
      if (life !== this.#life) return;
      this.#grantedMs = this.#nowMs;
      this.isRenewing = true;
      this.#renew(life);
    });
    // Some clients keep their lease to the end.
    const holdMs = random.chance(0.3) ? Infinity : random.between(200, 2 * this.ttlMs);
    if (holdMs < Infinity) clock.after(holdMs, () => this.#end());
  }

  /** Chosen so that a new grant often coincides with an expiry, or with a checkpoint. */
  #end(): void {
    if (this.#isSettling) return;
    const { clock, random } = this.#options;
    this.isRenewing = false;
    const choice = random.next();
    if (choice < 0.25) {
      this.#revoke();
      clock.after(random.between(10, 1_500), () => this.#begin());
      return;
    }
    const idleMs = Math.max(0, this.#nowMs - this.lastSuccessMs);
    const atCheckpointMs = Math.max(0, checkpointAt * this.ttlMs * random.between(0.97, 1.04) - idleMs);
    const atExpiryMs = this.ttlMs * random.between(0.9, 1.1);
    const laterMs = random.between(this.ttlMs, 4 * this.ttlMs);
    clock.after(choice < 0.65 ? atCheckpointMs : choice < 0.8 ? atExpiryMs : laterMs, () => {
      if (this.#isSettling) return;
      this.#revoke();
      this.#begin();
    });
  }

  #revoke(): void {
    const life = this.#life;
    this.#call('LeaseRevoke', requestAbout(this.id), () => {
      if (life !== this.#life) return;
      this.#revokedMs = this.#nowMs;
      // The lease is gone for good: no server may report otherwise.
      if (this.#options.random.chance(0.5)) this.#ask(life);
      else this.#askTimeToLive();
    });
  }

  #renew(life: number): void {
    if (life !== this.#life || !this.isRenewing) return;
    this.#ask(life);
    this.#options.clock.after(this.#renewIntervalMs(), () => this.#renew(life));
  }

  /** Mostly in time, sometimes at the last moment. */
  #renewIntervalMs(): number {
    const { random } = this.#options;
    if (this.#isSettling || random.chance(0.8)) return this.ttlMs / 3;
    return random.chance(0.5) ? this.ttlMs * random.between(0.8, 1) : this.ttlMs - random.between(0, 60);
  }

  #ask(life: number): void {
    const renewals = this.#renewalStream();
    const asked = { life, sentMs: this.#nowMs, floor: this.#options.toldRevision() };
    renewals.asked.push(asked);
    renewals.stream.write(requestAbout(this.id));
    this.#options.clock.after(patienceMs, () => {
      if (this.#renewals === renewals && renewals.asked.includes(asked)) this.#leaveServer();
    });
  }

  /** The user of this client may have logged in by then, or may have the permission. */
  #askAgain(life: number): void {
    this.#options.clock.after(againMs, () => {
      if (life === this.#life && this.isRenewing) this.#ask(life);
    });
  }

  #renewalStream(): RenewalStream {
    if (this.#renewals !== undefined) return this.#renewals;
    const renewals: RenewalStream = {
      asked: [],
      stream: this.#server().open('/etcdserverpb.Lease/LeaseKeepAlive', {
        onMessage: (message) => {
          const { TTL: ttlSeconds, header } = fromBinary(etcdserverpb.LeaseKeepAliveResponseSchema, message);
          const asked = renewals.asked.shift();
          this.#judgeTtl(Number(ttlSeconds));
          this.#judgeRevision(Number(header?.revision ?? 0n), asked?.floor ?? 0);
          if (asked?.life === this.#life) this.#answered(Number(ttlSeconds), asked.sentMs);
        },
        onEnd: ({ code }) => {
          if (this.#renewals !== renewals) return;
          this.#leaveServer();
          if (accessCodes.has(code)) this.#askAgain(this.#life);
        },
      }),
    };
    this.#renewals = renewals;
    return renewals;
  }

  /** The reply to a renewal names a revision that is no older than any that a client knew when it was sent. */
  #judgeRevision(revision: number, floor: number): void {
    if (revision >= floor) return;
    this.#options.checker.violated('A5', `a renewal of lease ${this.id} was answered at ${revision} after ${floor}`);
  }

  #judgeTtl(ttlSeconds: number): void {
    if (ttlSeconds === 0 || ttlSeconds === Math.ceil(this.ttlMs / 1_000)) return;
    this.#options.checker.violated('L6', `a renewal of lease ${this.id} was answered with ${ttlSeconds} s`);
  }

  #answered(ttlSeconds: number, sentMs: number): void {
    const { checker, clock } = this.#options;
    if (ttlSeconds > 0) {
      this.lastSuccessMs = Math.max(this.lastSuccessMs, sentMs);
      if (this.#isKnownGone(sentMs)) {
        checker.violated('L3', `a renewal of lease ${this.id} was acknowledged that began after it had been revoked`);
      }
      return;
    }
    const isKnown = this.#grantedMs <= sentMs && this.isRenewing;
    if (isKnown && (checker.grantedMs(this.id) ?? Infinity) < this.#grantedMs) {
      checker.violated('L3', `lease ${this.id}, granted before the renewal began, was said not to exist`);
    }
    this.isRenewing = false;
    clock.after(50, () => this.#begin());
  }

  /** An earlier grant with an unknown outcome may have been applied after the revocation. */
  #isKnownGone(askedMs: number): boolean {
    const { checker } = this.#options;
    const goneMs = checker.endOf(this.id)?.atMs ?? Infinity;
    return askedMs >= this.#revokedMs && !checker.exists(this.id) && goneMs < askedMs;
  }

  #askTimeToLive(): void {
    const askedMs = this.#nowMs;
    const { checker } = this.#options;
    this.#call('LeaseTimeToLive', requestAbout(this.id), (reply) => {
      const { TTL: ttlSeconds, grantedTTL } = fromBinary(etcdserverpb.LeaseTimeToLiveResponseSchema, reply);
      if (ttlSeconds >= 0n && this.#isKnownGone(askedMs)) {
        checker.violated('L3', `lease ${this.id} was said to live after it had been revoked`);
      }
      if (ttlSeconds < -1n || (ttlSeconds >= 0n && ttlSeconds > grantedTTL)) {
        checker.violated('L6', `lease ${this.id} of ${grantedTTL} s was said to have ${ttlSeconds} s left`);
      }
    });
  }

  /** Calls `onReply` for a success; a refusal and an unknown outcome are alike to this client. */
  #call(method: string, request: Uint8Array, onReply: (reply: Uint8Array) => void): void {
    const connection = this.#server();
    const failed = (): void => {
      if (this.#connection === connection && this.#options.random.chance(0.5)) this.#leaveServer();
    };
    const replied = connection.call(`/etcdserverpb.Lease/${method}`, request, callLimitMs);
    replied.then(onReply).catch(failed);
  }

  /** Mostly the server that it used last. */
  #server(): ClientConnection {
    if (this.#connection !== undefined && this.#options.random.chance(0.1)) this.#leaveServer();
    this.#connection ??= this.#options.connect();
    return this.#connection;
  }

  #leaveServer(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#renewals = undefined;
    connection?.close();
  }
}
