import { etcdserverpb } from '@tenure/protocol';
import { EtcdError } from 'tenure/etcd';
import { engineErrorOf } from './engine-error-of.ts';
import { modRevisionIs, putOp } from './etcd-requests.ts';
import type { KeyRange } from './log-keys.ts';
import { encodeMark } from './log-mark.ts';
import type { StoredLog } from './stored-log.ts';

/** Keys deleted by one request: etcd blocks other writes meanwhile. */
const recordsPerSlice = 500;
const partsPerSlice = 64;

/**
 * Removes the entries that the newest snapshot replaces. The base moves first: from then on no server reads below it,
 * so the keys can be deleted in slices, and the keys left when this process ends are deleted by the next trim.
 */
export class LogTrimmer {
  readonly #log: StoredLog;
  readonly #compacts: boolean;

  /** `compacts`: whether etcd serves only this log, so that its old revisions are not needed. */
  constructor(log: StoredLog, compacts: boolean) {
    this.#log = log;
    this.#compacts = compacts;
  }

  /** `check` throws once the engine has ended: the trim stops after the current slice. */
  async trim(index: number, check: () => void): Promise<void> {
    const { keys } = this.#log;
    try {
      const baseIndex = await this.#moveBase(index);
      await this.#removeSlices(keys.recordsUpTo(baseIndex), recordsPerSlice, check);
      await this.#removeSlices(keys.partsBefore(baseIndex), partsPerSlice, check);
      if (this.#compacts) await this.#compact();
    } catch (error) {
      throw engineErrorOf(`trimming the log under ${keys.prefix} in etcd failed`, error, 'unavailable');
    }
  }

  /** The index after which the log begins, or will begin. */
  async #moveBase(index: number): Promise<number> {
    const { client, keys, marker } = this.#log;
    for (;;) {
      const { snapshot } = await this.#log.look();
      const upTo = Math.min(index, snapshot?.position.index ?? 0);
      // The record after the last removed one, or else the head, has the hash of the new base.
      const look = await this.#log.look({ recordsFrom: upTo + 1 });
      const base = look.records[0]?.before ?? look.head;
      if (base.position.index <= look.base.position.index) return look.base.position.index;
      const compare = [modRevisionIs(keys.base, look.baseRevision)];
      const success = [putOp(keys.base, encodeMark('base', marker, base))];
      const answer = await client.write(etcdserverpb.KV.method.txn, { compare, success });
      if (answer.succeeded) {
        await this.#log.look();
        return base.position.index;
      }
    }
  }

  async #removeSlices(range: KeyRange, keysPerSlice: number, check: () => void): Promise<void> {
    const { client } = this.#log;
    for (;;) {
      check();
      const request = { ...range, limit: BigInt(keysPerSlice), keysOnly: true };
      const { kvs } = await client.read(etcdserverpb.KV.method.range, request);
      const last = kvs.at(-1);
      if (last === undefined) return;
      const rangeEnd = Buffer.concat([last.key, Buffer.of(0)]);
      await client.read(etcdserverpb.KV.method.deleteRange, { key: range.key, rangeEnd });
      if (kvs.length < keysPerSlice) return;
    }
  }

  async #compact(): Promise<void> {
    const { revision } = await this.#log.look();
    try {
      await this.#log.client.read(etcdserverpb.KV.method.compact, { revision });
    } catch (error) {
      // Another server has moved the base first.
      if (!(error instanceof EtcdError && error.etcdCode === 'compacted')) throw error;
    }
  }
}
