import { etcdserverpb } from '@tenure/protocol';
import type { EtcdConnection } from '../connection/etcd-connection.ts';
import { rangeOf } from './key-range.ts';
import type { KeyRange } from './key-range.ts';
import { KeyValue } from './key-value.ts';
import type { Bytes } from './key-value.ts';
import type { DeleteOptions, GetOptions, PutOptions } from './kv-options.ts';
import { getResult } from './kv-results.ts';
import type { DeleteResult, GetResult, PutResult } from './kv-results.ts';
import { TxnBuilder } from './txn-builder.ts';
import { putRequest, rangeRequest } from './kv-requests.ts';

/**
 * Keys and values. Reads are linearizable by default, and are repeated on another server when one fails. Writes are
 * sent once: one that fails with the code `ambiguous` may have been done. All reject with EtcdError.
 */
export class KvClient {
  readonly #connection: EtcdConnection;

  constructor(connection: EtcdConnection) {
    this.#connection = connection;
  }

  async get(range: KeyRange, options: GetOptions = {}): Promise<GetResult> {
    const request = rangeRequest(range, options);
    const answer = await this.#connection.read(etcdserverpb.KV.method.range, request, options);
    return getResult(answer, answer.header?.revision ?? 0n);
  }

  /** One key, or undefined. */
  async getOne(key: Bytes, options: GetOptions = {}): Promise<KeyValue | undefined> {
    return (await this.get(key, options)).kvs[0];
  }

  async put(key: Bytes, value: Bytes, options: PutOptions = {}): Promise<PutResult> {
    const answer = await this.#connection.write(etcdserverpb.KV.method.put, putRequest(key, value, options));
    return { revision: answer.header?.revision ?? 0n, prevKv: answer.prevKv && new KeyValue(answer.prevKv) };
  }

  async delete(range: KeyRange, options: DeleteOptions = {}): Promise<DeleteResult> {
    const request = { ...rangeOf(range), prevKv: options.prevKv === true };
    const answer = await this.#connection.write(etcdserverpb.KV.method.deleteRange, request);
    const prevKvs = answer.prevKvs.map((kv) => new KeyValue(kv));
    return { revision: answer.header?.revision ?? 0n, deleted: answer.deleted, prevKvs };
  }

  /** `await kv.txn().if(compare.isAbsent('k')).do(operation.put('k', 'v')).else(operation.get('k')).commit()` */
  txn(): TxnBuilder {
    return new TxnBuilder(this.#connection, { conditions: [], success: [], failure: [] });
  }

  /** Removes the history before a revision. */
  async compact(revision: bigint, options: { readonly physical?: boolean } = {}): Promise<void> {
    const request = { revision, physical: options.physical === true };
    await this.#connection.write(etcdserverpb.KV.method.compact, request);
  }
}
