import type { Operation } from './operation.ts';

/** A key's value and what etcd tells beside it. */
export interface KeyVersion {
  readonly value: string;
  readonly createRevision: number;
  readonly modRevision: number;
  readonly version: number;
  /** 0n: none. */
  readonly lease: bigint;
}

/** Values are unique in a history, so that a value names the call that wrote it. */
export type KvInput =
  /** One read of all of them. */
  | { readonly kind: 'get'; readonly keys: readonly string[] }
  /** One put, or one transaction that writes them all. */
  | {
      readonly kind: 'put';
      readonly writes: readonly (readonly [key: string, value: string])[];
      readonly lease?: bigint;
    }
  | { readonly kind: 'delete'; readonly key: string }
  /** Writes if the key holds what is expected (undefined: if there is no such key), else reads it. */
  | { readonly kind: 'swap'; readonly key: string; readonly expected: string | undefined; readonly value: string };

export interface KvOutput {
  /** Of the header. */
  readonly revision: number;
  /** Whether the store was changed. Always with a put, never with a get. */
  readonly changed: boolean;
  /** What the reply told of keys: with a get what is there, else what was there before. `null`: no such key. */
  readonly seen: ReadonlyMap<string, KeyVersion | null>;
}

export type KvOperation = Operation<KvInput, KvOutput>;
