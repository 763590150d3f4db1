import { EngineError } from '../engine-error.ts';

/** All keys that begin with `key`, as a range for etcd's requests: [key, rangeEnd). */
export interface KeyRange {
  readonly key: Buffer;
  readonly rangeEnd: Buffer;
}

/**
 * The names of the keys of one log, all under `<prefix>/`:
 *
 * - `head`, `base`, `snapshot`: the end and the beginning of the log, and its newest snapshot (log-mark.ts);
 * - `log/<index>`: the record of one append (log-record.ts), named by its LAST entry, so that the first key at or after
 * an index is the record with that entry;
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

  /** The records whose last entry is at or after `fromIndex`. */
  recordsFrom(fromIndex: number): KeyRange {
    return { key: this.record(fromIndex), rangeEnd: this.#under('log/').rangeEnd };
  }

  /** The records whose last entry is at or before `upToIndex`. */
  recordsUpTo(upToIndex: number): KeyRange {
    return { key: this.record(0), rangeEnd: this.record(upToIndex + 1) };
  }

  record(lastIndex: number): Buffer {
    return this.#key(`log/${hex(lastIndex, 16)}`);
  }

  /** The last index in a record's key; undefined for any other key. */
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
   * The parts of all records that begin before `index`, including the parts of failed appends there: those can no
   * longer be appended once the log has grown past them.
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

  /** The other parts of the snapshot that this part's key belongs to; undefined for any other key. */
  snapshotPartsOf(key: Uint8Array): KeyRange | undefined {
    const name = Buffer.from(key).toString('utf8').slice(this.prefix.length);
    const group = /^\/(snap\/[0-9a-f]{16}-[0-9a-f]{32}\/)[0-9a-f]{8}$/.exec(name)?.[1];
    return group === undefined ? undefined : this.#under(group);
  }

  /** The heads of possible logs at parent prefixes: `/a` and `/a/b` share keys. */
  get headsAbove(): readonly Buffer[] {
    const parts = this.prefix.split('/');
    const above = parts.slice(1, -1).map((_, at) => parts.slice(0, at + 2).join('/'));
    if (parts.length > 1 && parts[0] !== '') above.unshift(parts[0]!);
    return above.map((prefix) => Buffer.from(`${prefix}/head`));
  }

  #key(name: string): Buffer {
    return Buffer.from(`${this.prefix}/${name}`);
  }

  /** `name` is empty or ends in a slash; the next character after the slash ends the range. */
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
