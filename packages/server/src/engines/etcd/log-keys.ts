import { EngineError } from '../engine-error.ts';

/** All keys that begin with `key`, as etcd's requests want it: [key, rangeEnd). */
export interface KeyRange {
  readonly key: Buffer;
  readonly rangeEnd: Buffer;
}

/**
 * The names of the keys of one log, all under `<prefix>/`:
 *
 * - `head`, `base`, `snapshot`: where the log ends and begins, and its newest snapshot (log-mark.ts);
 * - `log/<index>`: what one append wrote (log-record.ts), named by its LAST entry, so that the first key at or behind
 *   an index is the record with that entry;
 * - `part/<index before>/<id>/<number>`: the entries of a record that is too large for one value;
 * - `snap/<index>-<id>/<number>`: the parts of a snapshot.
 *
 * Indexes have 16 hex digits, so that keys sort as numbers do; part numbers have 8.
 */
export class LogKeys {
  readonly prefix: string;
  readonly head: Buffer;
  readonly base: Buffer;
  readonly snapshot: Buffer;

  /** Throws EngineError `unusable`. */
  constructor(prefix: string) {
    this.prefix = prefix.replace(/\/+$/, '');
    if (this.prefix === '' || this.prefix.includes('\0')) {
      const message = `the etcd prefix '${prefix}' cannot be used: give the log a name of its own, such as /tenure`;
      throw new EngineError('unusable', message);
    }
    this.head = this.#key('head');
    this.base = this.#key('base');
    this.snapshot = this.#key('snapshot');
  }

  get everything(): KeyRange {
    return this.#under('');
  }

  /** The records whose last entry is at `fromIndex` or behind it. */
  recordsFrom(fromIndex: number): KeyRange {
    return { key: this.record(fromIndex), rangeEnd: this.#under('log/').rangeEnd };
  }

  /** The records whose last entry is at `upToIndex` or before it. */
  recordsUpTo(upToIndex: number): KeyRange {
    return { key: this.record(0), rangeEnd: this.record(upToIndex + 1) };
  }

  record(lastIndex: number): Buffer {
    return this.#key(`log/${hex(lastIndex, 16)}`);
  }

  /** The last index that a record's key names; undefined when it is no such key. */
  recordIndex(key: Uint8Array): number | undefined {
    const name = Buffer.from(key).toString('utf8').slice(this.prefix.length);
    const digits = /^\/log\/([0-9a-f]{16})$/.exec(name)?.[1];
    return digits === undefined ? undefined : Number.parseInt(digits, 16);
  }

  part(indexBefore: number, id: string, number: number): Buffer {
    return this.#key(`part/${hex(indexBefore, 16)}/${id}/${hex(number, 8)}`);
  }

  parts(indexBefore: number, id: string): KeyRange {
    return this.#under(`part/${hex(indexBefore, 16)}/${id}/`);
  }

  /**
   * The parts of all records that begin before `index`, and those of appends there that came to nothing: none of them
   * can be appended any more once the log has got beyond.
   */
  partsBefore(index: number): KeyRange {
    return { key: this.#key('part/'), rangeEnd: this.#key(`part/${hex(index, 16)}`) };
  }

  snapshotPart(index: number, id: string, number: number): Buffer {
    return this.#key(`snap/${hex(index, 16)}-${id}/${hex(number, 8)}`);
  }

  snapshotParts(index: number, id: string): KeyRange {
    return this.#under(`snap/${hex(index, 16)}-${id}/`);
  }

  get allSnapshotParts(): KeyRange {
    return this.#under('snap/');
  }

  /** The parts of the same snapshot as the part with this key; undefined when it is no such key. */
  snapshotPartsOf(key: Uint8Array): KeyRange | undefined {
    const name = Buffer.from(key).toString('utf8').slice(this.prefix.length);
    const group = /^\/(snap\/[0-9a-f]{16}-[0-9a-f]{32}\/)[0-9a-f]{8}$/.exec(name)?.[1];
    return group === undefined ? undefined : this.#under(group);
  }

  /** The heads that logs above this one would have: `/a` and `/a/b` share keys. */
  get headsAbove(): readonly Buffer[] {
    const parts = this.prefix.split('/');
    const above = parts.slice(1, -1).map((_, at) => parts.slice(0, at + 2).join('/'));
    if (parts.length > 1 && parts[0] !== '') above.unshift(parts[0]!);
    return above.map((prefix) => Buffer.from(`${prefix}/head`));
  }

  #key(name: string): Buffer {
    return Buffer.from(`${this.prefix}/${name}`);
  }

  /** `name` is empty or ends in a slash; the character behind the slash ends the range. */
  #under(name: string): KeyRange {
    const key = this.#key(name);
    const rangeEnd = Buffer.from(key);
    rangeEnd[rangeEnd.length - 1] = 0x30;
    return { key, rangeEnd };
  }
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
