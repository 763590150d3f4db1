import type { Command, CommandResponse, KvEvent, RangeRequest, RangeResult, TxnRequest, TxnResult } from '@tenure/core';
import { NaiveModel } from '../../packages/core/src/testing/naive-model.ts';
import { naiveCompare, naiveRange } from '../../packages/core/src/testing/naive-keys.ts';
import type { LoggedEntry } from '../../packages/server/src/engines/log-engine.ts';
import { decodeCommand } from '../../packages/server/src/replica/command-codec.ts';
import { decodeEntry } from '../../packages/server/src/replica/entry-codec.ts';
import { AccessLog, type KeysNow } from '../access/access-log.ts';
import { tagOfCommand } from './request-tag.ts';

/** What the log did with a tagged request. */
export interface LoggedRequest {
  readonly command: Command;
  readonly response: CommandResponse;
  /** The store's revision directly after it. */
  readonly revision: number;
}

/** The keys and leases as the durable log defines them, by a model without any code of the production store. */
export class KeyOracle {
  /** The users, who decide which requests have an effect. */
  readonly access = new AccessLog();
  readonly #model: NaiveModel = new NaiveModel((command) => this.access.applied(command, this.#keysNow));
  readonly #keysNow: KeysNow;
  readonly #requests = new Map<string, LoggedRequest>();
  /** Revisions that the end of a lease has made. */
  readonly #endsOfLeases = new Set<number>();

  constructor() {
    const model = this.#model;
    this.#keysNow = {
      get revision() {
        return model.currentRevision;
      },
      keysOfLease: (id) => model.keysOfLease(id),
    };
  }

  get currentRevision(): number {
    return this.#model.currentRevision;
  }

  /** -1 before the first compaction. */
  get compactRevision(): number {
    return this.#model.compactRevision;
  }

  /** The leases that exist, in the order of their grants. */
  get leaseIds(): readonly bigint[] {
    return [...this.#model.leases.keys()];
  }

  /** To be called once for each durable entry, in order. Returns the tags of the requests in it that had an effect. */
  committed(entry: LoggedEntry): readonly string[] {
    const { headers, commands } = decodeEntry(entry.bytes);
    const { index } = entry.position;
    const decoded = commands.map(decodeCommand);
    const before = this.currentRevision;
    const applied = this.#model.apply({ index, ...headers, commands: decoded });
    const done: string[] = [];
    let revision = before;
    for (const [position, command] of decoded.entries()) {
      const response = applied.responses[position]!;
      if (response.kind === 'error') {
        if (response.code !== 'StaleEpoch') this.#note(command, { command, response, revision });
        continue;
      }
      const { revision: after } = response;
      const endsLeases = command.kind === 'leaseRevoke' || command.kind === 'expireLeases';
      for (let made = revision + 1; endsLeases && made <= after; made += 1) this.#endsOfLeases.add(made);
      revision = after;
      const tag = this.#note(command, { command, response, revision });
      if (tag !== undefined) done.push(tag);
    }
    return done;
  }

  /** The first time that the log held the request; undefined while it does not. */
  requestTagged(tag: string): LoggedRequest | undefined {
    return this.#requests.get(tag);
  }

  isEndOfLease(revision: number): boolean {
    return this.#endsOfLeases.has(revision);
  }

  /** In the order of a watch. Compacted revisions have their events too. */
  eventsAt(revision: number): readonly KvEvent[] {
    return this.#model.historyAt(revision);
  }

  /** Regardless of compactions. */
  rangeAt(revision: number, request: RangeRequest): RangeResult {
    return naiveRange(this.#model.keysAt(revision), request);
  }

  /** The keys that were attached to the lease at that revision, in byte order. */
  keysOfLeaseAt(revision: number, id: bigint): string[] {
    const attached = [...this.#model.keysAt(revision).values()].filter(({ lease }) => lease === id);
    return attached.map(({ key }) => key).sort((one, other) => (one < other ? -1 : 1));
  }

  /** The result of a transaction without writes, none of whose reads names a revision. */
  readTxnAt(revision: number, txn: TxnRequest): TxnResult {
    const keys = this.#model.keysAt(revision);
    const succeeded = txn.compare.every((compare) => naiveCompare(keys, compare));
    const responses = (succeeded ? txn.success : txn.failure).map((op) => {
      if (op.kind === 'txn') return { kind: 'txn', revision: 0, txn: this.readTxnAt(revision, op.txn) } as const;
      if (op.kind !== 'range') throw new Error(`a transaction of reads has a ${op.kind}`);
      return { kind: 'range', revision, range: this.rangeAt(revision, op.range) } as const;
    });
    return { succeeded, responses };
  }

  #note(command: Command, logged: LoggedRequest): string | undefined {
    const tag = tagOfCommand(command);
    if (tag === undefined) return undefined;
    const earlier = this.#requests.get(tag);
    if (earlier === undefined || earlier.response.kind === 'error') this.#requests.set(tag, logged);
    return tag;
  }
}
