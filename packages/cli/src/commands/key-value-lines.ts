import type { MessageShape } from '@bufbuild/protobuf';
import type { mvccpb } from '@tenure/protocol';

type KeyValue = MessageShape<typeof mvccpb.KeyValueSchema>;

/** A key on one line, its value on the next. */
export function keyValueLines(kvs: readonly (KeyValue | undefined)[]): Uint8Array[] {
  return kvs.flatMap((kv) => (kv === undefined ? [] : [kv.key, kv.value]));
}
