import type { Operation } from './operation.ts';

/** A key's value and its metadata in etcd. */
export interface KeyVersion {
  readonly value: string;
  readonly createRevision: number;
  readonly modRevision: number;
  readonly version: number;
  /** 0n: none. */
  readonly lease: bigint;
}

/** Values are unique in a history, so that a value identifies the call that wrote it. */
export type KvInput =
  /** One read of all of them. */
  | { readonly kind: 'get'; readonly keys: readonly string[] }
  /** One put, or one transaction that writes all of them. */
  | {
      readonly kind: 'put';
      readonly writes: readonly (readonly [key: string, value: string])[];
      readonly lease?: bigint;
    }
  | { readonly kind: 'delete'; readonly key: string }
  /** Writes if the key has the expected value (undefined: if the key does not exist), else reads it. */
  | { readonly kind: 'swap'; readonly key: string; readonly expected: string | undefined; readonly value: string };

export interface KvOutput {
  /** From the header. */
  readonly revision: number;
  /** Whether the store was changed. Always for a put, never for a get. */
  readonly changed: boolean;
  /** The keys in the reply: for a get the current version, else the previous one. `null`: no such key. */
  readonly seen: ReadonlyMap<string, KeyVersion | null>;
}

export type KvOperation = Operation<KvInput, KvOutput>;
