import type { Command, CommandBody, CommandResponse, RangeRequest, TxnRequest } from '@tenure/core';
import { checkRange, isReadOnlyTxn } from '@tenure/core';
import { etcdserverpb } from '@tenure/protocol';
import {
  decodeDeleteRangeRequest,
  decodeRequest,
  decodePutRequest,
  decodeRangeRequest,
  decodeBoundedTxnRequest,
  deleteRangeReplyList,
  encodePutResponse,
  encodePutResponseWithin,
  encodeRangeResponse,
  encodeTxnResponseWithin,
  encodeFramed,
  rangeReplyList,
} from '@tenure/codec';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import type { CommandRules } from './command-rules.ts';
import type { Identity } from './identity.ts';
import { requested, type RequestedBy, requestedOfServers, throwRefused } from './requested.ts';
import type { LongReplies } from './long-replies.ts';
import { headerMessage, responseHeader } from './response-header.ts';
import type { Caller } from './sliced-work.ts';
import { toSafeNumber } from './safe-number.ts';
import { statusOfCoreError } from './status-of.ts';
import { type LargeReply, type Reply, smallReplyBytes } from '@tenure/grpc-server';

export interface KvServiceOptions {
  readonly replica: ReplicaAccess;
  readonly identity: Identity;
  readonly rules: CommandRules;
  readonly longReplies: LongReplies;
}

/**
 * etcd's KV service: decode, check, propose or read, encode. Requests are written to the log as received. On an engine
 * with one server a linearizable read is a read of memory: every acknowledged write has been applied here.
 */
export class KvService {
  readonly #options: KvServiceOptions;

  constructor(options: KvServiceOptions) {
    this.#options = options;
  }

  range(request: Buffer, caller: Caller): Reply | Promise<Reply> {
    const range = decodeRangeRequest(request);
    const refused = checkRange(range);
    if (refused !== undefined) throw statusOfCoreError(refused);
    const caughtUp = range.serializable ? undefined : this.#options.replica.linearize();
    return caughtUp === undefined ? this.#read(range, caller) : caughtUp.then(() => this.#read(range, caller));
  }

  #read(range: RangeRequest, caller: Caller): Reply | Promise<Reply> {
    const { replica, identity, longReplies } = this.#options;
    const { state } = replica;
    throwRefused(state.accessOf(caller.requester)?.read(range));
    const header = responseHeader(identity, state.currentRevision, state.epoch);
    if (range.rangeEnd !== '')
      return longReplies.range(state, range, (result) => rangeReplyList(header, result), caller);
    const result = state.range(range);
    if ('kind' in result) throw statusOfCoreError(result);
    // One key: most reads are of one, and their replies are small.
    const isSmall = result.kvs.length === 0 || result.kvs[0]!.value.length < smallReplyBytes / 2;
    return isSmall ? encodeRangeResponse(header, result) : longReplies.list(rangeReplyList(header, result), caller);
  }

  put(request: Buffer, { requester }: RequestedBy): Promise<Reply> {
    const command: Command = requested({ kind: 'put', put: decodePutRequest(request) }, requester);
    const full = this.#admit(command, request);
    return full ?? this.#options.replica.propose(command, request).then(this.#putAnswer);
  }

  deleteRange(request: Buffer, caller: Caller): Promise<Reply> {
    const body: CommandBody = { kind: 'deleteRange', deleteRange: decodeDeleteRangeRequest(request) };
    const command = requested(body, caller.requester);
    const full = this.#admit(command, request);
    if (full !== undefined) return full;
    return this.#options.replica.propose(command, request).then((response) => this.#deleteAnswer(response, caller));
  }

  txn(request: Buffer, caller: Caller): Reply | Promise<Reply> {
    const { replica, rules, longReplies } = this.#options;
    const txn: TxnRequest = decodeBoundedTxnRequest(request, rules.maxReadTxnOps);
    if (isReadOnlyTxn(txn)) {
      const refused = rules.txnRefusal(txn);
      if (refused !== undefined) throw refused;
      const caughtUp = replica.linearize();
      return caughtUp === undefined ? this.#readTxn(txn, caller) : caughtUp.then(() => this.#readTxn(txn, caller));
    }
    const command = requested({ kind: 'txn', txn }, caller.requester);
    const full = this.#admit(command, request);
    if (full !== undefined) return full;
    const propose = (): Promise<Reply> => replica.propose(command, request).then(this.#txnAnswer);
    return longReplies.isLong(replica.state, txn) ? this.#longTxn(txn, caller, propose) : propose();
  }

  /**
   * A transaction that scans too much now is not proposed; other transactions beyond the limits are refused by apply.
   * How much there is to scan is told only to who may read it, by auth data that is not older than the request.
   */
  async #longTxn(txn: TxnRequest, caller: Caller, propose: () => Promise<Reply>): Promise<Reply> {
    const { replica, longReplies } = this.#options;
    const { state } = replica;
    const isChecked = state.accessOf(caller.requester) !== undefined;
    if (isChecked) await replica.linearize();
    const tooLarge = await longReplies.inTurn(() => {
      throwRefused(state.accessOf(caller.requester)?.txn(txn));
      return state.checkTxnCost(txn);
    }, caller);
    if (tooLarge !== undefined) throw statusOfCoreError(tooLarge);
    return propose();
  }

  /** A transaction that cannot write is a read: it needs no entry. */
  #readTxn(txn: TxnRequest, caller: Caller): Reply | Promise<Reply> {
    const { replica, identity, longReplies } = this.#options;
    const { state } = replica;
    const check = (): void => throwRefused(state.accessOf(caller.requester)?.txn(txn));
    const evaluate = (): Reply => {
      const result = state.readTxn(txn);
      if ('kind' in result) throw statusOfCoreError(result);
      const header = responseHeader(identity, state.currentRevision, state.epoch);
      return builtWithin((roomBytes) => encodeTxnResponseWithin(header, result, roomBytes));
    };
    check();
    if (!longReplies.isLong(state, txn)) return evaluate();
    // The permission may end while the read waits for its turn.
    return longReplies.inTurn(() => {
      check();
      return evaluate();
    }, caller);
  }

  async compact(request: Buffer, { requester }: RequestedBy): Promise<Buffer> {
    const { replica, identity, rules } = this.#options;
    const revision = toSafeNumber(decodeRequest(etcdserverpb.CompactionRequestSchema, request).revision);
    const command = await requestedOfServers({ kind: 'compact', revision }, requester, replica);
    const refused = rules.refusal(command);
    if (refused !== undefined) throw refused;
    const response = await replica.propose(command);
    if (response.kind === 'error') throw statusOfCoreError(response);
    const header = headerMessage(identity, response.kind === 'compact' ? response.revision : 0, replica.state.epoch);
    return encodeFramed(etcdserverpb.CompactionResponseSchema, { header });
  }

  /** Throws if the command violates the rules. Returns a promise that rejects if there is no space for it. */
  #admit(command: Command, request: Buffer): Promise<never> | undefined {
    const refused = this.#options.rules.refusal(command);
    if (refused !== undefined) throw refused;
    return this.#admitSize(command, request);
  }

  #admitSize(command: Command, request: Buffer): Promise<never> | undefined {
    const { rules } = this.#options;
    const refused = rules.sizeRefusal(request.length);
    if (refused !== undefined) throw refused;
    return rules.admit(command, request.length);
  }

  // Created once, so that a request allocates no closure for its response.
  readonly #putAnswer = (response: CommandResponse): Reply => {
    if (response.kind !== 'put') throw refusal(response);
    const { identity, replica } = this.#options;
    const header = responseHeader(identity, response.revision, replica.state.epoch);
    if (response.put.prevKv === undefined) return encodePutResponse(header, response.put);
    return builtWithin((roomBytes) => encodePutResponseWithin(header, response.put, roomBytes));
  };

  #deleteAnswer(response: CommandResponse, caller: Caller): Reply | Promise<Reply> {
    if (response.kind !== 'deleteRange') throw refusal(response);
    const { identity, replica, longReplies } = this.#options;
    const header = responseHeader(identity, response.revision, replica.state.epoch);
    return longReplies.list(deleteRangeReplyList(header, response.deleteRange), caller);
  }

  readonly #txnAnswer = (response: CommandResponse): LargeReply => {
    if (response.kind !== 'txn') throw refusal(response);
    const { identity, replica } = this.#options;
    const header = responseHeader(identity, response.revision, replica.state.epoch);
    return builtWithin((roomBytes) => encodeTxnResponseWithin(header, response.txn, roomBytes));
  };
}

/** A reply that is built at once, from a result bounded by the limits of a request. */
function builtWithin(within: LargeReply['within']): LargeReply {
  return { heldBytes: 0, within };
}

function refusal(response: CommandResponse): Error {
  if (response.kind === 'error') return statusOfCoreError(response);
  return new Error(`the state machine answered '${response.kind}' to another kind of command`);
}
