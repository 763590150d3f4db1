import type { Compare, PutRequest, RangeRequest, RequestOp, TxnRequest } from '@tenure/core';
import type { SeededRandom } from '@tenure/test-support';
import type { KeyOracle } from './key-oracle.ts';
import type { KeyRequest } from './key-request.ts';
import { rangeRequest } from '../../packages/core/src/testing/requests.ts';
import { registerKeys } from './register-history.ts';
import { firstLeaseId, taggedCompare, taggedRangeEnd, taggedValue } from './request-tag.ts';

/** Keys of every kind of request: few, so that clients and leases conflict. One range reads all keys of the load. */
const mixedKeys: readonly string[] = ['m/0', 'm/1', 'm/2', 'm/3', 'm/4', 'm/5'];
/** Of large values only, so that the previous values are large too. */
const largeKeys: readonly string[] = ['m/l0', 'm/l1', 'm/l2'];
const allKeys: readonly string[] = [...mixedKeys, ...registerKeys];

export interface KeyLoadOptions {
  readonly client: number;
  readonly random: SeededRandom;
  /** What exists now: the load picks leases, values and revisions that make conflicts likely. */
  readonly oracle: KeyOracle;
  /** How often a request compacts. */
  readonly compactChance: number;
  /** The length of a value of large transactions; 0: none is made. */
  readonly largeBytes: number;
}

type Kind = 'register' | 'put' | 'delete' | 'range' | 'txn' | 'readTxn' | 'grant' | 'revoke' | 'leaseKeys';

const weights: readonly (readonly [kind: Kind, weight: number])[] = [
  ['register', 30],
  ['put', 17],
  ['delete', 5],
  ['range', 17],
  ['txn', 16],
  ['readTxn', 4],
  ['grant', 5],
  ['revoke', 3],
  ['leaseKeys', 3],
];
const weightOfAll = weights.reduce((sum, [, weight]) => sum + weight, 0);

/** Draws the requests of one client. The writes have tags that no other write has. */
export class KeyLoad {
  readonly #options: KeyLoadOptions;
  #count = 0;
  /** Of this client's grants, those that it has not revoked. */
  readonly #leases: bigint[] = [];

  constructor(options: KeyLoadOptions) {
    this.#options = options;
  }

  next(): KeyRequest {
    const { random, oracle, compactChance, largeBytes } = this.#options;
    this.#count += 1;
    if (oracle.currentRevision > 6 && random.chance(compactChance)) {
      return { kind: 'compact', revision: oracle.currentRevision - random.below(5) };
    }
    if (largeBytes > 0 && random.chance(0.05)) return this.#largeTxn(largeBytes);
    const kind = this.#kind();
    switch (kind) {
      case 'register':
        return this.#register();
      case 'put':
        return { kind: 'put', put: { ...this.#put(random.pick(mixedKeys), '0'), ignoreValue: false } };
      case 'delete':
        return this.#delete(random.pick(mixedKeys));
      case 'range':
        return { kind: 'range', range: this.#range() };
      case 'txn':
        return { kind: 'txn', txn: this.#tagged(this.#txn([...mixedKeys], 0)) };
      case 'readTxn':
        return { kind: 'txn', txn: this.#readTxn() };
      case 'grant':
        return this.#grant();
      case 'revoke':
        return this.#revoke();
      case 'leaseKeys':
        return { kind: 'leaseKeys', id: this.#lease() };
    }
  }

  get #tag(): string {
    return `${this.#options.client}.${this.#count}`;
  }

  #kind(): Kind {
    let left = this.#options.random.below(weightOfAll);
    for (const [kind, weight] of weights) {
      if (left < weight) return kind;
      left -= weight;
    }
    return 'range';
  }

  #register(): KeyRequest {
    const { random } = this.#options;
    const key = random.pick(registerKeys);
    const roll = random.below(10);
    if (roll < 4) return { kind: 'range', range: rangeRequest(key) };
    const put = { ...emptyPut, key, value: taggedValue(this.#tag, '0'), prevKv: random.chance(0.5) };
    if (roll < 6) return { kind: 'put', put };
    if (roll < 7) return this.#delete(key);
    if (roll < 8) {
      const other = random.pick(registerKeys.filter((one) => one !== key));
      const otherPut = { ...put, key: other, value: taggedValue(this.#tag, '1') };
      return { kind: 'txn', txn: this.#tagged({ compare: [], success: [putOp(put), putOp(otherPut)], failure: [] }) };
    }
    const value = this.#valueOf(key);
    const expected: Compare =
      value === undefined
        ? { ...emptyCompare, key, target: 0, number: 0 }
        : { ...emptyCompare, key, target: 3, value: random.chance(0.8) ? value : 'another' };
    const failure: RequestOp[] = [{ kind: 'range', range: rangeRequest(key) }];
    return { kind: 'txn', txn: this.#tagged({ compare: [expected], success: [putOp(put)], failure }) };
  }

  /** Attaches the key to a lease, moves it to another, detaches it, or keeps its lease. */
  #put(key: string, rest: string): PutRequest {
    const { random } = this.#options;
    const ignoreLease = random.chance(0.1);
    const lease = !ignoreLease && random.chance(0.6) ? this.#lease() : 0n;
    const prevKv = random.chance(0.4);
    if (random.chance(0.1)) return { ...emptyPut, key, prevKv, ignoreLease, lease, ignoreValue: true };
    return { ...emptyPut, key, value: taggedValue(this.#tag, rest), prevKv, ignoreLease, lease };
  }

  #delete(key: string): KeyRequest {
    const deleteRange = { key, rangeEnd: taggedRangeEnd(key, this.#tag), prevKv: this.#options.random.chance(0.5) };
    return { kind: 'deleteRange', deleteRange };
  }

  #range(): RangeRequest {
    const { random, oracle } = this.#options;
    const isOne = random.chance(0.3);
    const old = oracle.currentRevision - random.integer(-2, 12);
    return {
      ...rangeRequest(isOne ? random.pick(allKeys) : random.pick(['m/', 'a'])),
      rangeEnd: isOne ? '' : random.pick(['m0', '\0', 'm/3']),
      revision: random.chance(0.3) ? Math.max(1, old) : 0,
      serializable: random.chance(0.4),
      limit: random.chance(0.2) ? random.integer(1, 3) : 0,
      sortOrder: random.chance(0.2) ? random.below(3) : 0,
      sortTarget: random.below(5),
      keysOnly: random.chance(0.1),
      countOnly: random.chance(0.1),
      minModRevision: random.chance(0.1) ? Math.max(1, old) : 0,
    };
  }

  #tagged(txn: TxnRequest): TxnRequest {
    return { ...txn, compare: [taggedCompare(this.#tag), ...txn.compare] };
  }

  /** A branch writes each of `keys` at most once: etcd refuses more. The keys written in any branch are taken out. */
  #txn(keys: string[], depth: number): TxnRequest {
    const { random } = this.#options;
    const compare = Array.from({ length: random.below(depth === 0 ? 2 : 3) }, () => this.#compare());
    const left = [...keys];
    const other = [...keys];
    const success = this.#branch(left, depth);
    const failure = random.chance(0.5) ? this.#branch(other, depth) : [];
    keys.splice(0, keys.length, ...left.filter((key) => other.includes(key)));
    // A transaction that no branch of which writes is a read, and would not be in the log.
    if (depth === 0) success.push(putOp({ ...emptyPut, key: 'm/txn', value: taggedValue(this.#tag, 'end') }));
    return { compare, success, failure };
  }

  #branch(keys: string[], depth: number): RequestOp[] {
    const { random } = this.#options;
    return Array.from({ length: random.integer(1, 3) }, (_, at): RequestOp => {
      const roll = random.next();
      if (roll < 0.2) return { kind: 'range', range: { ...rangeRequest('m/'), rangeEnd: 'm0' } };
      if (roll < 0.4 && depth < 2) return { kind: 'txn', txn: this.#txn(keys, depth + 1) };
      const [key] = keys.splice(random.below(keys.length), 1);
      if (key === undefined) return { kind: 'range', range: rangeRequest('m/0') };
      if (roll < 0.85) return putOp(this.#put(key, `${depth}${at}`));
      return { kind: 'deleteRange', deleteRange: { key, rangeEnd: '', prevKv: random.chance(0.5) } };
    });
  }

  #compare(): Compare {
    const { random, oracle } = this.#options;
    const key = random.pick(mixedKeys);
    const [kv] = oracle.rangeAt(oracle.currentRevision, rangeRequest(key)).kvs;
    const target = random.below(5);
    const number = [kv?.version, kv?.createRevision, kv?.modRevision][target] ?? 0;
    return {
      ...emptyCompare,
      key,
      target,
      result: random.below(4),
      number,
      value: kv?.value ?? '',
      lease: kv?.lease ?? 0n,
    };
  }

  #readTxn(): TxnRequest {
    const { random } = this.#options;
    const reads = (): RequestOp[] => [
      { kind: 'range', range: rangeRequest(random.pick(mixedKeys)) },
      { kind: 'range', range: { ...rangeRequest('m/'), rangeEnd: 'q' } },
    ];
    const inner: RequestOp = { kind: 'txn', txn: { compare: [this.#compare()], success: reads(), failure: [] } };
    return { compare: [this.#compare()], success: [...reads(), inner], failure: reads() };
  }

  #largeTxn(bytes: number): KeyRequest {
    const success = largeKeys.map((key, at) => {
      return putOp({ ...emptyPut, key, value: taggedValue(this.#tag, `${at}`).padEnd(bytes, 'x') });
    });
    return { kind: 'txn', txn: this.#tagged({ compare: [], success, failure: [] }) };
  }

  #grant(): KeyRequest {
    const { client, random } = this.#options;
    const number = firstLeaseId(client) + BigInt(this.#count);
    // etcd accepts negative ids.
    const id = random.chance(0.1) ? -number : number;
    this.#leases.push(id);
    return { kind: 'leaseGrant', id, ttlMs: random.pick([1_000, 2_000, 5_000, 60_000, longestTtlMs]), label: '' };
  }

  #revoke(): KeyRequest {
    const { random } = this.#options;
    const [id] = this.#leases.splice(random.below(this.#leases.length), 1);
    return id === undefined ? this.#grant() : { kind: 'leaseRevoke', id };
  }

  /** Mostly one that exists. */
  #lease(): bigint {
    const { random, oracle } = this.#options;
    const { leaseIds } = oracle;
    return leaseIds.length === 0 || random.chance(0.05) ? 999n : random.pick(leaseIds);
  }

  #valueOf(key: string): string | undefined {
    const { oracle } = this.#options;
    return oracle.rangeAt(oracle.currentRevision, rangeRequest(key)).kvs[0]?.value;
  }
}

/** etcd's limit. It is beyond what 32 bits hold. */
const longestTtlMs = 9_000_000_000_000;
const emptyPut: PutRequest = { key: '', value: '', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
const emptyCompare: Compare = { result: 0, target: 0, key: '', rangeEnd: '', number: 0, value: '', lease: 0n };

function putOp(put: PutRequest): RequestOp {
  return { kind: 'put', put };
}
