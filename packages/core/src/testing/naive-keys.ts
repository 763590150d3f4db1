import type {
  Compare,
  DeleteRangeRequest,
  DeleteRangeResult,
  KeyValue,
  KvEvent,
  PutRequest,
  PutResult,
  RangeRequest,
  RangeResult,
} from '../mvcc/kv-types.ts';

/** The keys at one revision, unsorted. */
export type Keys = ReadonlyMap<string, KeyValue>;

export function inRange(key: string, from: string, rangeEnd: string): boolean {
  if (rangeEnd === '') return key === from;
  return key >= from && (rangeEnd === '\0' || key < rangeEnd);
}

function select(keys: Keys, from: string, rangeEnd: string): KeyValue[] {
  const found = [...keys.values()].filter((kv) => inRange(kv.key, from, rangeEnd));
  return found.sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** A range with etcd's rules, in the simplest form. */
export function naiveRange(keys: Keys, request: RangeRequest): RangeResult {
  const all = select(keys, request.key, request.rangeEnd);
  if (request.countOnly) return { kvs: [], more: false, count: all.length };
  const { minModRevision, maxModRevision, minCreateRevision, maxCreateRevision, limit } = request;
  const filters = [minModRevision, maxModRevision, minCreateRevision, maxCreateRevision];
  const fetchesAll = limit <= 0 || request.sortOrder !== 0 || filters.some((filter) => filter !== 0);
  let kvs = fetchesAll ? all : all.slice(0, limit + 1);
  kvs = kvs
    .filter((kv) => maxModRevision === 0 || kv.modRevision <= maxModRevision)
    .filter((kv) => minModRevision === 0 || kv.modRevision >= minModRevision)
    .filter((kv) => maxCreateRevision === 0 || kv.createRevision <= maxCreateRevision)
    .filter((kv) => minCreateRevision === 0 || kv.createRevision >= minCreateRevision);
  const direction = request.sortOrder === 2 ? -1 : 1;
  const sorted = kvs
    .slice()
    .sort((a, b) => direction * order(field(a, request.sortTarget), field(b, request.sortTarget)));
  const cut = limit > 0 ? sorted.slice(0, limit) : sorted;
  return {
    kvs: cut.map((kv) => (request.keysOnly ? { ...kv, value: '' } : kv)),
    more: cut.length < sorted.length,
    count: all.length,
  };
}

function field(kv: KeyValue, target: number): string | number {
  return [kv.key, kv.version, kv.createRevision, kv.modRevision, kv.value][target] ?? 0;
}

function order(a: string | number | bigint, b: string | number | bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

export function naiveCompare(keys: Keys, compare: Compare): boolean {
  const found = select(keys, compare.key, compare.rangeEnd);
  if (found.length > 0) return found.every((kv) => meets(compare, kv));
  const none: KeyValue = { key: '', value: '', createRevision: 0, modRevision: 0, version: 0, lease: 0n };
  return compare.target !== 3 && meets(compare, none);
}

function meets(compare: Compare, kv: KeyValue): boolean {
  const sides: [string | number | bigint, string | number | bigint][] = [
    [kv.version, compare.number],
    [kv.createRevision, compare.number],
    [kv.modRevision, compare.number],
    [kv.value, compare.value],
    [kv.lease, compare.lease],
  ];
  const outcome = order(...sides[compare.target]!);
  return [outcome === 0, outcome > 0, outcome < 0, outcome !== 0][compare.result]!;
}

/** A revision being written. */
export class NaiveWrite {
  readonly keys: Map<string, KeyValue>;
  readonly events: KvEvent[] = [];
  readonly #before: Keys;
  readonly #revision: number;

  constructor(before: Keys, revision: number) {
    this.#before = before;
    this.keys = new Map(before);
    this.#revision = revision;
  }

  put(request: PutRequest): PutResult {
    const prevKv = this.keys.get(request.key);
    const kv: KeyValue = {
      key: request.key,
      value: request.ignoreValue ? (prevKv?.value ?? '') : request.value,
      createRevision: prevKv?.createRevision ?? this.#revision,
      modRevision: this.#revision,
      version: (prevKv?.version ?? 0) + 1,
      lease: request.ignoreLease ? (prevKv?.lease ?? 0n) : request.lease,
    };
    this.keys.set(request.key, kv);
    this.#tell('put', kv, prevKv);
    return { prevKv: request.prevKv ? prevKv : undefined };
  }

  deleteRange(request: DeleteRangeRequest): DeleteRangeResult {
    const doomed = select(this.keys, request.key, request.rangeEnd);
    for (const kv of doomed) this.delete(kv);
    return { deleted: doomed.length, prevKvs: request.prevKv ? doomed : [] };
  }

  delete(prevKv: KeyValue): void {
    this.keys.delete(prevKv.key);
    const kv = { key: prevKv.key, value: '', createRevision: 0, modRevision: this.#revision, version: 0, lease: 0n };
    this.#tell('delete', kv, prevKv);
  }

  /** An event shows the pair from before the whole revision, unless the change has created the key. */
  #tell(type: KvEvent['type'], kv: KeyValue, replaced: KeyValue | undefined): void {
    this.events.push({ type, kv, prevKv: replaced === undefined ? undefined : this.#before.get(kv.key) });
  }
}
