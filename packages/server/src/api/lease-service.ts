import type { Command, Requester } from '@tenure/core';
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
import type { Lessor } from '../leases/lessor.ts';
import type { Random } from '../random/random.ts';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import type { CommandRules } from './command-rules.ts';
import type { Identity } from './identity.ts';
import { LeaseList } from './lease-list.ts';
import type { LongReplies } from './long-replies.ts';
import { type Collection, ListReply } from './list-reply.ts';
import { requested, type RequestedBy, throwRefused } from './requested.ts';
import { headerMessage, responseHeader } from './response-header.ts';
import type { Caller } from './sliced-work.ts';
import { statusNamed, statusOf, statusOfCoreError, streamStatusOf } from './status-of.ts';
import { okStatus, type Reply } from '@tenure/grpc-server';
import type { DuplexCall } from '../transport/transport.ts';

/** Handles renewals on any server, leader or follower. */
export interface RenewalHandler {
  /**
   * The granted TTL in milliseconds, or 0 if the lease does not exist. A number where this server leads and its memory
   * decides. A promise where the log or another server decides; it may wait for the next leader. While authentication
   * is enabled, the leader checks that `by` may write every key of the lease: if not, the promise rejects.
   */
  renew(id: bigint, by: Requester | undefined): number | Promise<number>;
  /** The lowest revision that the header of a reply may name: the one at which the leader answered. */
  revision(): number;
}

export interface LeaseServiceOptions {
  readonly random: Random;
  readonly replica: ReplicaAccess;
  readonly renewals: RenewalHandler;
  /** On the leader. Throws on another server. */
  readonly lessor: () => Lessor;
  readonly identity: Identity;
  readonly rules: CommandRules;
  readonly longReplies: LongReplies;
  readonly minLeaseTtlMs: number;
}

/** The least TTL, in ms, for a reply in whole seconds, since 0 seconds would mean that the lease is gone. */
const minSecondsTtlMs = 1_000;
/** Keys of a lease processed by one step of a long list. */
const keysAStep = 1_000;
/** Up to this many leases are listed without waiting for a turn. */
const leasesAtOnce = 1_000;
/** The reply for a lease that does not exist. */
const gone = { ttlSeconds: -1, ttlMs: -1, grantedMs: 0, label: '' } as const;

/** Requests of one stream that wait for the log or the leader; beyond this the stream is paused. */
const maxWaitingRenewals = 10_000;

/**
 * etcd's Lease service. Renewals of leases with in-memory deadlines are answered by the leader from memory, in the turn
 * in which they are read.
 */
export class LeaseService {
  readonly #options: LeaseServiceOptions;
  /** The long lists that have not begun, by the request and its requester. */
  readonly #nextLists = new Map<string, ListReply<number>>();

  constructor(options: LeaseServiceOptions) {
    this.#options = options;
  }

  async grant(request: Buffer, { requester }: RequestedBy): Promise<Buffer> {
    const { replica, identity, rules } = this.#options;
    const { id: askedId, ttlSeconds, ttlMs: askedMs, label } = decodeLeaseGrantRequest(request);
    const ttlMs = this.#grantedTtlMs(ttlSeconds, askedMs);
    const ttlRaised = ttlMs > (askedMs === 0 ? ttlSeconds * 1000 : askedMs);
    const id = askedId === 0n ? this.#freeId() : askedId;
    const command: Command = requested({ kind: 'leaseGrant', id, ttlMs, label }, requester);
    const refused = rules.refusal(command) ?? rules.sizeRefusal(request.length);
    if (refused !== undefined) {
      // As in etcd, a client that may ask for nothing hears that first.
      throwRefused(replica.state.accessOf(requester)?.user());
      throw refused;
    }
    const full = rules.admit(command, request.length);
    if (full !== undefined) return full;
    const response = await replica.propose(command);
    if (response.kind === 'error') throw statusOfCoreError(response);
    const header = responseHeader(identity, replica.state.currentRevision, replica.state.epoch);
    return encodeLeaseGrantResponse(header, { id, ttlMs, ttlRaised });
  }

  async revoke(request: Buffer, { requester }: RequestedBy): Promise<Buffer> {
    const { replica, identity, rules } = this.#options;
    const id = decodeLeaseRevokeRequest(request);
    const command = requested({ kind: 'leaseRevoke', id }, requester);
    const refused = rules.refusal(command);
    if (refused !== undefined) throw refused;
    const response = await replica.propose(command);
    if (response.kind === 'error') throw statusOfCoreError(response);
    const revision = response.kind === 'leaseRevoke' ? response.revision : replica.state.currentRevision;
    return encodeFramed(etcdserverpb.LeaseRevokeResponseSchema, {
      header: headerMessage(identity, revision, replica.state.epoch),
    });
  }

  keepAlive(call: DuplexCall): void {
    /** For each lease with a running query: how many requests arrived after the query. */
    const waiting = new Map<bigint, number>();
    /** The queries and the requests after them. */
    let unanswered = 0;
    let halfClosed = false;
    let open = true;
    const endWhenDone = (): void => {
      if (open && halfClosed && waiting.size === 0) call.end(okStatus);
    };
    const answer = (id: bigint, ttlMs: number, count: number): boolean => {
      let room = true;
      for (let answers = 0; answers < count; answers += 1) room = call.send(this.#renewed(id, ttlMs));
      return room;
    };
    /** Renews once for `count` requests. Returns whether the stream has room for more. */
    const ask = (id: bigint, count: number): boolean => {
      // The latest identity that the client has shown on this stream.
      const outcome = this.#options.renewals.renew(id, call.requester);
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
      const later = waiting.size === 0 ? undefined : waiting.get(id);
      // The requests after a query share one further query: the lease may have been granted or revoked in between, with
      // an acknowledgement to its holder.
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
    const { replica, lessor, identity, longReplies } = this.#options;
    const { id, keys: withKeys } = decodeLeaseTimeToLiveRequest(request);
    const { state } = replica;
    const access = state.accessOf(caller.requester);
    throwRefused(withKeys ? access?.readKeysOf(id) : access?.user());
    const header = responseHeader(identity, state.currentRevision, state.epoch);
    const lease = state.lease(id);
    const remainingMs = lessor().remainingMs(id);
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

  /**
   * See LeaseList. All callers that wait for a long one to begin get the same; while authentication is enabled, all of
   * one user.
   */
  leases(request: Buffer, caller: Caller): Reply | Promise<Reply> {
    const { replica, longReplies } = this.#options;
    const { details } = decodeRequest(etcdserverpb.LeaseLeasesRequestSchema, request);
    const { requester } = caller;
    throwRefused(replica.state.accessOf(requester)?.user());
    if (replica.state.leaseCount <= leasesAtOnce) {
      return longReplies.collected(this.#listLeases(details, requester), caller);
    }
    const asked = requester === undefined ? `${details}` : `${details} ${requester.authRevision} ${requester.user}`;
    let next = this.#nextLists.get(asked);
    if (next === undefined) {
      next = new ListReply(() => {
        // Later callers may know of leases that this list does not have.
        this.#nextLists.delete(asked);
        return this.#listLeases(details, requester);
      });
      this.#nextLists.set(asked, next);
    }
    return longReplies.make(next, caller);
  }

  #listLeases(withDetails: boolean, by: Requester | undefined): Collection<number> {
    const { replica, lessor, identity } = this.#options;
    const { state } = replica;
    const header = responseHeader(identity, state.currentRevision, state.epoch);
    const list = new LeaseList({ state, by, lessor, withDetails });
    return { step: () => list.step(), message: () => list.message(header) };
  }

  #renewed(id: bigint, ttlMs: number): Buffer {
    const { renewals, identity, replica } = this.#options;
    const header = responseHeader(identity, renewals.revision(), replica.state.epoch);
    return encodeLeaseKeepAliveResponse(header, { id, ttlMs });
  }

  #grantedTtlMs(ttlSeconds: number, askedMs: number): number {
    const { minLeaseTtlMs } = this.#options;
    const ttlMs = askedMs === 0 ? Math.max(ttlSeconds * 1000, minSecondsTtlMs) : askedMs;
    // A longer one is refused by apply like this one, and would not fit the log.
    return Math.min(Math.max(ttlMs, minLeaseTtlMs), Number.MAX_SAFE_INTEGER);
  }

  /**
   * A random id that no lease has; positive, as etcd's are. In a race for the same id one of the two gets LeaseExists.
   */
  #freeId(): bigint {
    for (;;) {
      const id = this.#options.random.bytes(8).readBigUInt64BE() & 0x7fff_ffff_ffff_ffffn;
      if (id !== 0n && this.#options.replica.state.lease(id) === undefined) return id;
    }
  }
}

/** Throws the status that ends a stream of renewals after an invalid message. */
function leaseIdOf(message: Buffer): bigint {
  try {
    return decodeLeaseKeepAliveRequest(message);
  } catch (error) {
    const schema = etcdserverpb.LeaseKeepAliveRequestSchema;
    throw streamStatusOf(error instanceof DecodeError ? withNames(error, schema, message) : error) ?? error;
  }
}

/**
 * Whole seconds as in etcd: a TTL of 90 s shows 89 at once, and the last second of a lease shows 0. Such a lease still
 * exists; one that does not exist has -1. `remainingMs` is rounded up, so that a whole number of seconds is a little
 * less.
 */
function wholeSecondsLeft(remainingMs: number): number {
  return Math.floor((remainingMs - 1) / 1000);
}

/** Collects some keys, and returns whether there are no more. */
function takeKeys(names: Iterator<string>, keys: string[]): boolean {
  for (let left = keysAStep; left > 0; left -= 1) {
    const next = names.next();
    if (next.done === true) return true;
    keys.push(next.value);
  }
  return false;
}
