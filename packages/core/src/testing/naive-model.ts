import { coreError } from '../core-error.ts';
import type { CoreError } from '../core-error.ts';
import type { Lease, LeaseChange } from '../lease/lease-types.ts';
import type {
  DeleteRangeRequest,
  KeyValue,
  KvEvent,
  PutRequest,
  RangeRequest,
  RangeResult,
  ResponseOp,
} from '../mvcc/kv-types.ts';
import type { RequestOp, TxnRequest, TxnResult } from '../mvcc/kv-types.ts';
import type { Command, CommandResponse } from '../state-machine/command.ts';
import type { Applied, Entry } from '../state-machine/entry.ts';
import { NaiveWrite, inRange, naiveCompare, naiveRange } from './naive-keys.ts';
import type { Keys } from './naive-keys.ts';

/**
 * A model of the state machine without optimisations: a full copy of the keys for each revision, forever. It covers
 * keys, leases, claims and compactions; examples test the rest, and the other commands change none of these.
 */
export class NaiveModel {
  /** Indexed by revision. */
  readonly #keys: Keys[] = [new Map(), new Map()];
  readonly #events: KvEvent[][] = [[], []];
  readonly leases = new Map<bigint, Lease>();
  /** Cluster time at the claim of each epoch. */
  readonly #epochStarts: number[] = [0];
  compactRevision = -1;
  clusterTimeMs = 0;
  appliedIndex = 0;
  #changes: LeaseChange[] = [];
  readonly #refusalOf: (command: Command) => CoreError | undefined;

  /** `refusalOf` is asked for each command before it is applied: see NaiveAccess. */
  constructor(refusalOf: (command: Command) => CoreError | undefined = () => undefined) {
    this.#refusalOf = refusalOf;
  }

  get currentRevision(): number {
    return this.#keys.length - 1;
  }

  get epoch(): number {
    return this.#epochStarts.length - 1;
  }

  apply(entry: Entry): Applied {
    this.appliedIndex = entry.index;
    this.#changes = [];
    const firstRevision = this.currentRevision + 1;
    const first = entry.commands[0];
    const current = first?.kind === 'claim' ? first.epoch === this.epoch + 1 : entry.epoch === this.epoch;
    if (current) this.clusterTimeMs = Math.max(this.clusterTimeMs, entry.timeMs);
    const responses = entry.commands.map((command, position) =>
      current ? this.#command(command, position) : coreError('StaleEpoch'),
    );
    return { responses, firstRevision, lastRevision: this.currentRevision, leaseChanges: this.#changes };
  }

  range(request: RangeRequest): RangeResult | CoreError {
    if (request.revision > this.currentRevision) return coreError('FutureRevision');
    const revision = request.revision > 0 ? request.revision : this.currentRevision;
    if (revision < this.compactRevision) return coreError('Compacted');
    return naiveRange(this.#keys[revision]!, request);
  }

  /** Also those of compacted revisions. */
  keysAt(revision: number): Keys {
    return this.#keys[revision]!;
  }

  /** The events of a revision with all previous values, also of a compacted one. */
  historyAt(revision: number): readonly KvEvent[] {
    return this.#events[revision]!;
  }

  eventsAt(revision: number): readonly KvEvent[] {
    const events = this.#events[revision]!;
    return revision === this.compactRevision ? events.map((event) => ({ ...event, prevKv: undefined })) : events;
  }

  keysOfLease(id: bigint): string[] {
    const keys = [...this.#newest.values()].filter((kv) => kv.lease === id && id !== 0n);
    return keys.map((kv) => kv.key).sort((a, b) => (a < b ? -1 : 1));
  }

  deadlineOf(lease: Lease): number | undefined {
    if (lease.deadlineMs !== undefined) return lease.deadlineMs;
    const endMs = this.#epochStarts[lease.liveEpoch + 1];
    return endMs === undefined ? undefined : endMs + lease.ttlMs;
  }

  get #newest(): Keys {
    return this.#keys[this.currentRevision]!;
  }

  #command(command: Command, position: number): CommandResponse {
    const refused = this.#refusalOf(command);
    if (refused !== undefined) return refused;
    switch (command.kind) {
      case 'put': {
        const error = this.#leaseError(command.put) ?? this.#keyError(command.put);
        return error ?? this.#write('put', (write) => ({ put: write.put(command.put) }));
      }
      case 'deleteRange':
        return this.#write('deleteRange', (write) => ({ deleteRange: write.deleteRange(command.deleteRange) }));
      case 'txn': {
        const error = this.#txnError(command.txn);
        return error ?? this.#write('txn', (write) => ({ txn: this.#runTxn(write, command.txn) }));
      }
      case 'compact':
        return this.#compact(command.revision);
      case 'claim':
        if (position > 0) return coreError('StaleEpoch');
        this.#epochStarts.push(this.clusterTimeMs);
        return { kind: 'ok', revision: this.currentRevision };
      case 'heartbeat':
      case 'createCluster':
      case 'registerMember':
      case 'removeMember':
      case 'resign':
      case 'setTxnLimits':
      case 'alarm':
      case 'auth':
        return { kind: 'ok', revision: this.currentRevision };
      default:
        return this.#leaseCommand(command);
    }
  }

  #leaseCommand(command: Command): CommandResponse {
    switch (command.kind) {
      case 'leaseGrant': {
        if (command.ttlMs > 9e12) return coreError('LeaseTtlTooLarge');
        if (this.leases.has(command.id)) return coreError('LeaseExists');
        const { id, ttlMs, label } = command;
        this.#setLease('granted', { ...this.#live(), id, ttlMs, label });
        return { kind: 'leaseGrant', revision: this.currentRevision, id, ttlMs };
      }
      case 'leaseRevoke':
        if (!this.leases.has(command.id)) return coreError('LeaseNotFound');
        this.#removeLease(command.id, 'revoked');
        return { kind: 'leaseRevoke', revision: this.currentRevision };
      case 'expireLeases': {
        const expired: bigint[] = [];
        for (const { id, renewIndex } of command.leases) {
          if (this.leases.get(id)?.renewIndex !== renewIndex) continue;
          this.#removeLease(id, 'expired');
          expired.push(id);
        }
        return { kind: 'expireLeases', revision: this.currentRevision, expired };
      }
      case 'checkpointLeases':
        for (const { id, renewIndex, deadlineMs } of command.leases) {
          const lease = this.leases.get(id);
          if (lease?.renewIndex === renewIndex && this.deadlineOf(lease) === undefined) {
            this.#setLease('checkpointed', { ...lease, deadlineMs });
          }
        }
        return { kind: 'checkpointLeases', revision: this.currentRevision };
      case 'renewLeases': {
        const renewed = command.ids.filter((id) => this.leases.has(id));
        for (const id of renewed) {
          const lease = this.leases.get(id)!;
          if (this.deadlineOf(lease) !== undefined) this.#setLease('renewed', { ...lease, ...this.#live() });
        }
        return { kind: 'renewLeases', revision: this.currentRevision, renewed };
      }
      default:
        throw new Error(`the model does not know ${command.kind}`);
    }
  }

  #live(): { renewIndex: number; liveEpoch: number; deadlineMs: undefined } {
    return { renewIndex: this.appliedIndex, liveEpoch: this.epoch, deadlineMs: undefined };
  }

  #setLease(kind: 'granted' | 'renewed' | 'checkpointed', lease: Lease): void {
    this.leases.set(lease.id, lease);
    this.#changes.push({ kind, lease });
  }

  #removeLease(id: bigint, cause: 'revoked' | 'expired'): void {
    const doomed = this.keysOfLease(id).map((key) => this.#newest.get(key)!);
    this.leases.delete(id);
    this.#changes.push({ kind: 'removed', id, cause });
    const write = new NaiveWrite(this.#newest, this.currentRevision + 1);
    for (const kv of doomed) write.delete(kv);
    this.#commit(write);
  }

  #compact(revision: number): CommandResponse {
    if (revision <= this.compactRevision) return coreError('Compacted');
    if (revision > this.currentRevision) return coreError('FutureRevision');
    this.compactRevision = revision;
    return { kind: 'compact', revision: this.currentRevision };
  }

  #write<Kind extends string, Result>(kind: Kind, run: (write: NaiveWrite) => Result): CommandResponse {
    const write = new NaiveWrite(this.#newest, this.currentRevision + 1);
    const result = run(write);
    this.#commit(write);
    return { kind, revision: this.currentRevision, ...result } as unknown as CommandResponse;
  }

  #commit(write: NaiveWrite): void {
    if (write.events.length === 0) return;
    this.#keys.push(write.keys);
    this.#events.push(write.events);
  }

  #leaseError(put: PutRequest): CoreError | undefined {
    return put.lease !== 0n && !this.leases.has(put.lease) ? coreError('LeaseNotFound') : undefined;
  }

  /** `gone`: the keys that earlier ops of the same transaction delete. */
  #keyError(put: PutRequest, gone: ReadonlySet<string> = new Set()): CoreError | undefined {
    const kept = this.#newest.has(put.key) && !gone.has(put.key);
    const missing = !kept && (put.ignoreLease || put.ignoreValue);
    return missing ? coreError('KeyNotFound') : undefined;
  }

  /** The first error on the chosen path. `deleted` are the ranges deleted so far on it. */
  #txnError(txn: TxnRequest, deleted: DeleteRangeRequest[] = []): CoreError | undefined {
    for (const op of this.#branch(txn)) {
      if (op.kind === 'deleteRange') deleted.push(op.deleteRange);
      const error = op.kind === 'txn' ? this.#txnError(op.txn, deleted) : this.#opError(op, deleted);
      if (error !== undefined) return error;
    }
    return undefined;
  }

  #opError(op: RequestOp, deleted: readonly DeleteRangeRequest[]): CoreError | undefined {
    if (op.kind === 'empty') return coreError('KeyNotFound');
    if (op.kind === 'put') {
      const keeps = op.put.ignoreLease || op.put.ignoreValue;
      const gone = keeps && deleted.some((one) => inRange(op.put.key, one.key, one.rangeEnd));
      return this.#keyError(op.put) ?? (gone ? coreError('KeyNotFound') : undefined) ?? this.#leaseError(op.put);
    }
    if (op.kind !== 'range' || op.range.revision === 0) return undefined;
    if (op.range.revision > this.currentRevision) return coreError('FutureRevision');
    return op.range.revision < this.compactRevision ? coreError('Compacted') : undefined;
  }

  #branch(txn: TxnRequest): readonly RequestOp[] {
    return this.#succeeds(txn) ? txn.success : txn.failure;
  }

  /** On the keys before the transaction, which has not committed anything yet. */
  #succeeds(txn: TxnRequest): boolean {
    return txn.compare.every((compare) => naiveCompare(this.#newest, compare));
  }

  #runTxn(write: NaiveWrite, txn: TxnRequest): TxnResult {
    const responses = this.#branch(txn).map((op) => this.#runOp(write, op));
    return { succeeded: this.#succeeds(txn), responses };
  }

  #runOp(write: NaiveWrite, op: RequestOp): ResponseOp {
    const run = (): Omit<ResponseOp, 'revision'> => {
      if (op.kind === 'put') return { kind: 'put', put: write.put(op.put) } as ResponseOp;
      if (op.kind === 'txn') return { kind: 'txn', txn: this.#runTxn(write, op.txn) } as ResponseOp;
      if (op.kind === 'range') return { kind: 'range', range: this.#rangeWithin(write, op.range) } as ResponseOp;
      if (op.kind === 'empty') throw new Error('an empty op is refused before');
      return { kind: 'deleteRange', deleteRange: write.deleteRange(op.deleteRange) } as ResponseOp;
    };
    const response = run();
    const revision = this.currentRevision + (write.events.length > 0 ? 1 : 0);
    return { ...response, revision: op.kind === 'txn' ? 0 : revision } as ResponseOp;
  }

  #rangeWithin(write: NaiveWrite, request: RangeRequest): RangeResult {
    return naiveRange(request.revision > 0 ? this.#keys[request.revision]! : write.keys, request);
  }

  /** Every key that has a lease, to check that keys and leases agree. */
  leasedKeys(): KeyValue[] {
    return [...this.#newest.values()].filter((kv) => kv.lease !== 0n);
  }
}
