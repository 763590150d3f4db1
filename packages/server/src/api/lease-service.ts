import type { Command } from '@tenure/core';
import { etcdserverpb } from '@tenure/protocol';
import {
  DecodeError,
  decodeLeaseGrantRequest,
  decodeLeaseKeepAliveRequest,
  decodeLeaseRevokeRequest,
  decodeLeaseTimeToLiveRequest,
  decodeRequest,
  encodeFramed,
  encodeLeaseGrantResponse,
  encodeLeaseKeepAliveResponse,
  type ListMessage,
  timeToLiveReplyList,
  withNames,
} from '@tenure/codec';
import type { LeaseDesk } from '../leases/lease-desk.ts';
import type { LeaseKeeper } from '../leases/lease-keeper.ts';
import type { Random } from '../random/random.ts';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import type { CommandRules } from './command-rules.ts';
import type { Identity } from './identity.ts';
import { LeaseList } from './lease-list.ts';
import type { LongReplies } from './long-replies.ts';
import { type Collection, ListReply } from './list-reply.ts';
import { headerMessage, responseHeader } from './response-header.ts';
import type { Caller } from './sliced-work.ts';
import { statusNamed, statusOf, statusOfCoreError, streamStatusOf } from './status-of.ts';
import { GrpcCode, GrpcStatus } from '../transport/grpc-status.ts';
import type { DuplexCall, Reply } from '../transport/transport.ts';

export interface LeaseServiceOptions {
  readonly random: Random;
  readonly replica: ReplicaAccess;
  readonly desk: LeaseDesk;
  /** On the server that leads. Throws on another. */
  readonly keeper: () => LeaseKeeper;
  readonly identity: Identity;
  readonly rules: CommandRules;
  readonly longReplies: LongReplies;
  readonly minLeaseTtlMs: number;
}

/** A grant that gives whole seconds has at least this, since 0 seconds would mean that the lease is gone. */
const minSecondsTtlMs = 1_000;
/** Keys of a lease that one step of a long list looks at. */
const keysAStep = 1_000;
/** As many leases are listed without waiting for a turn. */
const leasesAtOnce = 1_000;
/** What is said of a lease that is not there. */
const gone = { ttlSeconds: -1, ttlMs: -1, grantedMs: 0, label: '' } as const;

/** Requests of one stream that wait for the log or the leader; beyond it the stream is not read on. */
const maxWaitingRenewals = 10_000;

/**
 * etcd's Lease service. Renewals of live leases are answered from the leader's memory, in the turn in which they are
 * read.
 */
export class LeaseService {
  readonly #options: LeaseServiceOptions;
  /** With details and without: the long lists that have not begun. */
  readonly #nextLists = new Map<boolean, ListReply<number>>();

  constructor(options: LeaseServiceOptions) {
    this.#options = options;
  }

  async grant(request: Buffer): Promise<Buffer> {
    const { replica, identity, rules } = this.#options;
    const { id: askedId, ttlSeconds, ttlMs: askedMs, label } = decodeLeaseGrantRequest(request);
    const ttlMs = this.#grantedTtlMs(ttlSeconds, askedMs);
    const ttlRaised = ttlMs > (askedMs === 0 ? ttlSeconds * 1000 : askedMs);
    const id = askedId === 0n ? this.#freeId() : askedId;
    const command: Command = { kind: 'leaseGrant', id, ttlMs, label };
    const refused = rules.refusal(command) ?? rules.sizeRefusal(request.length);
    if (refused !== undefined) throw refused;
    await rules.admit(command, request.length);
    const response = await replica.propose(command);
    if (response.kind === 'error') throw statusOfCoreError(response);
    const header = responseHeader(identity, replica.state.currentRevision, replica.state.epoch);
    return encodeLeaseGrantResponse(header, { id, ttlMs, ttlRaised });
  }

  async revoke(request: Buffer): Promise<Buffer> {
    const { replica, identity } = this.#options;
    const id = decodeLeaseRevokeRequest(request);
    const response = await replica.propose({ kind: 'leaseRevoke', id });
    if (response.kind === 'error') throw statusOfCoreError(response);
    const revision = response.kind === 'leaseRevoke' ? response.revision : replica.state.currentRevision;
    return encodeFramed(etcdserverpb.LeaseRevokeResponseSchema, {
      header: headerMessage(identity, revision, replica.state.epoch),
    });
  }

  keepAlive(call: DuplexCall): void {
    /** For each lease that is asked about: how many requests came behind the question. */
    const waiting = new Map<bigint, number>();
    /** The questions and the requests behind them. */
    let unanswered = 0;
    let halfClosed = false;
    let open = true;
    const endWhenDone = (): void => {
      if (open && halfClosed && waiting.size === 0) call.end(new GrpcStatus(GrpcCode.ok, ''));
    };
    const answer = (id: bigint, ttlMs: number, count: number): boolean => {
      let room = true;
      for (let answers = 0; answers < count; answers += 1) room = call.send(this.#renewed(id, ttlMs));
      return room;
    };
    /** Renews once for `count` requests. Returns whether the stream has room for more. */
    const ask = (id: bigint, count: number): boolean => {
      const outcome = this.#options.desk.renew(id);
      if (typeof outcome === 'number') return answer(id, outcome, count);
      waiting.set(id, 0);
      unanswered += count;
      outcome.then(
        (ttlMs) => {
          const later = waiting.get(id) ?? 0;
          waiting.delete(id);
          unanswered -= count + later;
          if (!open) return;
          let room = answer(id, ttlMs, count);
          if (later > 0) room = ask(id, later);
          if (room && unanswered < maxWaitingRenewals) call.resume();
          endWhenDone();
        },
        (error: unknown) => {
          waiting.delete(id);
          if (open) call.end(statusOf(error) ?? statusNamed('Timeout'));
        },
      );
      return unanswered < maxWaitingRenewals;
    };
    call.onClose = () => (open = false);
    call.onHalfClose = () => {
      halfClosed = true;
      endWhenDone();
    };
    call.onDrain = () => {
      if (unanswered < maxWaitingRenewals) call.resume();
    };
    call.onMessage = (message) => {
      const id = leaseIdOf(message);
      const later = waiting.get(id);
      // What came behind a question has one of its own, all together: the lease may have been granted or revoked in
      // between, and its holder been told so.
      if (later === undefined) {
        if (!ask(id, 1)) call.pause();
        return;
      }
      waiting.set(id, later + 1);
      unanswered += 1;
      if (unanswered >= maxWaitingRenewals) call.pause();
    };
  }

  timeToLive(request: Buffer, caller: Caller): Reply | Promise<Reply> {
    const { replica, keeper, identity, longReplies } = this.#options;
    const { id, keys: withKeys } = decodeLeaseTimeToLiveRequest(request);
    const { state } = replica;
    const header = responseHeader(identity, state.currentRevision, state.epoch);
    const lease = state.lease(id);
    const remainingMs = keeper().remainingMs(id);
    if (lease === undefined || remainingMs === undefined) {
      return longReplies.list(timeToLiveReplyList(header, { id, ...gone }, []), caller);
    }
    const { ttlMs: grantedMs, label } = lease;
    const found = { id, ttlSeconds: wholeSecondsLeft(remainingMs), ttlMs: remainingMs, grantedMs, label };
    if (!withKeys) return longReplies.list(timeToLiveReplyList(header, found, []), caller);
    const keys: string[] = [];
    const names = state.keysOfLease(id);
    const message = (): ListMessage<string> => timeToLiveReplyList(header, found, keys);
    return longReplies.collected({ step: () => takeKeys(names, keys), message }, caller);
  }

  /** See LeaseList. All who wait for a long one to begin get the same. */
  leases(request: Buffer, caller: Caller): Reply | Promise<Reply> {
    const { replica, longReplies } = this.#options;
    const { details } = decodeRequest(etcdserverpb.LeaseLeasesRequestSchema, request);
    if (replica.state.leaseCount <= leasesAtOnce) return longReplies.collected(this.#listLeases(details), caller);
    let next = this.#nextLists.get(details);
    if (next === undefined) {
      next = new ListReply(() => {
        // Who asks from now on may know of leases that this one does not have.
        this.#nextLists.delete(details);
        return this.#listLeases(details);
      });
      this.#nextLists.set(details, next);
    }
    return longReplies.make(next, caller);
  }

  #listLeases(withDetails: boolean): Collection<number> {
    const { replica, keeper, identity } = this.#options;
    const { state } = replica;
    const header = responseHeader(identity, state.currentRevision, state.epoch);
    const list = new LeaseList(state.leases(), state.leaseCount, keeper, withDetails);
    return { step: () => list.step(), message: () => list.message(header) };
  }

  #renewed(id: bigint, ttlMs: number): Buffer {
    const { desk, identity, replica } = this.#options;
    const header = responseHeader(identity, desk.revision(), replica.state.epoch);
    return encodeLeaseKeepAliveResponse(header, { id, ttlMs });
  }

  #grantedTtlMs(ttlSeconds: number, askedMs: number): number {
    const { minLeaseTtlMs } = this.#options;
    if (askedMs !== 0) return Math.max(askedMs, minLeaseTtlMs);
    return Math.max(ttlSeconds * 1000, minSecondsTtlMs, minLeaseTtlMs);
  }

  /**
   * A random id that no lease has; positive, as etcd's are. A race for the same id ends in LeaseExists for one of
   * them.
   */
  #freeId(): bigint {
    for (;;) {
      const id = this.#options.random.bytes(8).readBigUInt64BE() & 0x7fff_ffff_ffff_ffffn;
      if (id !== 0n && this.#options.replica.state.lease(id) === undefined) return id;
    }
  }
}

/** Throws the status that ends a stream of renewals whose client sent something else. */
function leaseIdOf(message: Buffer): bigint {
  try {
    return decodeLeaseKeepAliveRequest(message);
  } catch (error) {
    const schema = etcdserverpb.LeaseKeepAliveRequestSchema;
    throw streamStatusOf(error instanceof DecodeError ? withNames(error, schema, message) : error) ?? error;
  }
}

/**
 * As etcd counts them: of 90 s there are 89 left at once, and of a lease's last second nothing. The lease lives all the
 * same; one that is gone has -1. `remainingMs` is rounded up, so that a whole number of seconds is a little less.
 */
function wholeSecondsLeft(remainingMs: number): number {
  return Math.floor((remainingMs - 1) / 1000);
}

/** Takes some keys, and returns whether there are no more. */
function takeKeys(names: Iterator<string>, keys: string[]): boolean {
  for (let left = keysAStep; left > 0; left -= 1) {
    const next = names.next();
    if (next.done === true) return true;
    keys.push(next.value);
  }
  return false;
}
