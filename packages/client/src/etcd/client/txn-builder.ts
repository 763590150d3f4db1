import { etcdserverpb } from '@tenure/protocol';
import type { EtcdConnection } from '../connection/etcd-connection.ts';
import { KeyValue } from './key-value.ts';
import { getResult } from './kv-results.ts';
import type { DeleteResult, GetResult, PutResult } from './kv-results.ts';
import type { Compare } from './compare.ts';
import type { Operation } from './operation.ts';
import type { Signal } from '../../time/signal.ts';

/** What one operation of a transaction did; `kind` tells which it was. */
export type OperationResult =
  | ({ readonly kind: 'get' } & GetResult)
  | ({ readonly kind: 'put' } & PutResult)
  | ({ readonly kind: 'delete' } & DeleteResult);

export interface TxnResult {
  /** Whether all conditions were true, so that the operations of `do` were done, else those of `else`. */
  readonly succeeded: boolean;
  readonly revision: bigint;
  /** One for each operation that was done, in their order. */
  readonly results: readonly OperationResult[];
}

interface TxnParts {
  readonly conditions: readonly Compare[];
  readonly success: readonly Operation[];
  readonly failure: readonly Operation[];
}

/** A transaction that is put together; each step gives a new one. */
export class TxnBuilder {
  readonly #connection: EtcdConnection;
  readonly #parts: TxnParts;

  constructor(connection: EtcdConnection, parts: TxnParts) {
    this.#connection = connection;
    this.#parts = parts;
  }

  /** All must be true. */
  if(...conditions: readonly Compare[]): TxnBuilder {
    return new TxnBuilder(this.#connection, { ...this.#parts, conditions: [...this.#parts.conditions, ...conditions] });
  }

  /** What is done when they are. It is not called `then`, or an await would take the builder for a promise. */
  do(...operations: readonly Operation[]): TxnBuilder {
    return new TxnBuilder(this.#connection, { ...this.#parts, success: [...this.#parts.success, ...operations] });
  }

  /** What is done when they are not. */
  else(...operations: readonly Operation[]): TxnBuilder {
    return new TxnBuilder(this.#connection, { ...this.#parts, failure: [...this.#parts.failure, ...operations] });
  }

  /** Sent once. Rejects with EtcdError; with the code `ambiguous` it may have been done. */
  async commit(options: { readonly signal?: Signal } = {}): Promise<TxnResult> {
    const { conditions, success, failure } = this.#parts;
    const request = { compare: [...conditions], success: [...success], failure: [...failure] };
    const answer = await this.#connection.write(etcdserverpb.KV.method.txn, request, options.signal);
    const revision = answer.header?.revision ?? 0n;
    return { succeeded: answer.succeeded, revision, results: answer.responses.map((one) => resultOf(one, revision)) };
  }
}

function resultOf({ response }: etcdserverpb.ResponseOp, revision: bigint): OperationResult {
  switch (response.case) {
    case 'responsePut': {
      const { prevKv } = response.value;
      return { kind: 'put', revision, prevKv: prevKv && new KeyValue(prevKv) };
    }
    case 'responseDeleteRange': {
      const { deleted, prevKvs } = response.value;
      return { kind: 'delete', revision, deleted, prevKvs: prevKvs.map((kv) => new KeyValue(kv)) };
    }
    case 'responseRange':
      return { kind: 'get', ...getResult(response.value, revision) };
    default:
      throw new Error(`a transaction was answered with ${String(response.case)}, which nobody asked for`);
  }
}
