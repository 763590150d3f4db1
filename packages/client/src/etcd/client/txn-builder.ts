import { etcdserverpb } from '@tenure/protocol';
import type { EtcdConnection } from '../connection/etcd-connection.ts';
import { KeyValue } from './key-value.ts';
import { getResult } from './kv-results.ts';
import type { DeleteResult, GetResult, PutResult } from './kv-results.ts';
import type { Compare } from './compare.ts';
import type { Operation } from './operation.ts';
import type { Signal } from '../../time/signal.ts';

/** The result of one operation of a transaction; `kind` is the kind of the operation. */
export type OperationResult =
  | ({ readonly kind: 'get' } & GetResult)
  | ({ readonly kind: 'put' } & PutResult)
  | ({ readonly kind: 'delete' } & DeleteResult);

export interface TxnResult {
  /** True if all conditions were true and the operations of `do` were executed; otherwise those of `else` were. */
  readonly succeeded: boolean;
  readonly revision: bigint;
  /** One for each executed operation, in their order. */
  readonly results: readonly OperationResult[];
}

interface TxnParts {
  readonly conditions: readonly Compare[];
  readonly success: readonly Operation[];
  readonly failure: readonly Operation[];
}

/** An immutable builder of a transaction; each step returns a new one. */
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

  /** The operations if they are. It is not called `then`, because an await would take the builder for a promise. */
  do(...operations: readonly Operation[]): TxnBuilder {
    return new TxnBuilder(this.#connection, { ...this.#parts, success: [...this.#parts.success, ...operations] });
  }

  /** The operations if they are not. */
  else(...operations: readonly Operation[]): TxnBuilder {
    return new TxnBuilder(this.#connection, { ...this.#parts, failure: [...this.#parts.failure, ...operations] });
  }

  /** Sent once. Rejects with EtcdError; with the code `ambiguous` it may have been executed. */
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
      throw new Error(`a transaction was answered with ${String(response.case)}, which was not requested`);
  }
}
