import type { KeyValue } from '@tenure/core';
import {
  bigIntFieldSize,
  delimitedSize,
  latin1FieldSize,
  numberFieldSize,
  writeBigIntField,
  writeDelimiter,
  writeLatin1Field,
  writeNumberField,
} from './wire-write.ts';

function keyValueSize(kv: KeyValue): number {
  return (
    latin1FieldSize(1, kv.key) +
    numberFieldSize(1, kv.createRevision) +
    numberFieldSize(1, kv.modRevision) +
    numberFieldSize(1, kv.version) +
    latin1FieldSize(1, kv.value) +
    bigIntFieldSize(1, kv.lease)
  );
}

/** The size of a key with its value as a field whose tag has one byte; 0 when there is none. */
export function keyValueFieldSize(kv: KeyValue | undefined): number {
  return kv === undefined ? 0 : delimitedSize(1, keyValueSize(kv));
}

export function writeKeyValueField(out: Buffer, at: number, tag: number, kv: KeyValue | undefined): number {
  if (kv === undefined) return at;
  at = writeDelimiter(out, at, tag, keyValueSize(kv));
  at = writeLatin1Field(out, at, 0x0a, kv.key);
  at = writeNumberField(out, at, 0x10, kv.createRevision);
  at = writeNumberField(out, at, 0x18, kv.modRevision);
  at = writeNumberField(out, at, 0x20, kv.version);
  at = writeLatin1Field(out, at, 0x2a, kv.value);
  return writeBigIntField(out, at, 0x30, kv.lease);
}
