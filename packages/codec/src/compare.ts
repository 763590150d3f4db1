import { writeLatin1 } from './latin1.ts';
import type { Compare } from '@tenure/core';
import type { WireReader } from './wire-reader.ts';
import {
  delimitedSize,
  int64Size,
  latin1FieldSize,
  numberFieldSize,
  varintSize,
  writeDelimiter,
  writeInt64,
  writeLatin1Field,
  writeNumberField,
  writeVarint,
} from './wire-write.ts';

const knownFields = [1, 2, 3, 4, 5, 6, 7, 8, 64];
const rangeEndTag = 0x202;

const targetVersion = 0;
const targetMod = 2;
const targetValue = 3;
const targetLease = 4;
/** The number of the oneof's first field; its fields follow in the order of the targets. */
const firstOperandField = 4;

/**
 * Reads the comparison that the reader has entered. As in etcd, an operand of another target than the named one counts
 * as absent, that is, as zero or empty.
 */
export function readCompare(reader: WireReader): Compare {
  let result = 0;
  let target = 0;
  let key = '';
  let rangeEnd = '';
  let operandField = 0;
  let number = 0;
  let value = '';
  let lease = 0n;
  while (reader.at < reader.end) {
    const tag = reader.tag();
    switch (tag) {
      case 0x08:
        result = reader.enumNumber();
        break;
      case 0x10:
        target = reader.enumNumber();
        break;
      case 0x1a:
        key = reader.latin1();
        break;
      case 0x20:
      case 0x28:
      case 0x30:
        operandField = tag >>> 3;
        number = reader.int64();
        break;
      case 0x3a:
        operandField = tag >>> 3;
        value = reader.latin1();
        break;
      case 0x40:
        operandField = tag >>> 3;
        lease = reader.bigInt64();
        break;
      case rangeEndTag:
        rangeEnd = reader.latin1();
        break;
      default:
        reader.skipUnknown(tag, knownFields);
    }
  }
  const fits = operandField === target + firstOperandField;
  return {
    result,
    target,
    key,
    rangeEnd,
    number: fits && target <= targetMod ? number : 0,
    value: fits && target === targetValue ? value : '',
    lease: fits && target === targetLease ? lease : 0n,
  };
}

/** The operand is written even when it is zero: a oneof distinguishes zero from absent. */
function operandSize(compare: Compare): number {
  const { target } = compare;
  if (target === targetValue) return delimitedSize(1, compare.value.length);
  if (target === targetLease) return 1 + int64Size(compare.lease);
  return target >= targetVersion && target <= targetMod ? 1 + varintSize(compare.number) : 0;
}

function writeOperand(out: Buffer, at: number, compare: Compare): number {
  const { target, value } = compare;
  if (target === targetValue) return writeLatin1(out, writeDelimiter(out, at, 0x3a, value.length), value);
  if (target === targetLease) return writeInt64(out, writeVarint(out, at, 0x40), compare.lease);
  if (target < targetVersion || target > targetMod) return at;
  return writeVarint(out, writeVarint(out, at, (target + firstOperandField) << 3), compare.number);
}

function compareSize(compare: Compare): number {
  return (
    numberFieldSize(1, compare.result) +
    numberFieldSize(1, compare.target) +
    latin1FieldSize(1, compare.key) +
    operandSize(compare) +
    latin1FieldSize(2, compare.rangeEnd)
  );
}

/** The size of the comparison as a field whose tag has one byte. */
export function compareFieldSize(compare: Compare): number {
  return delimitedSize(1, compareSize(compare));
}

export function writeCompareField(out: Buffer, at: number, tag: number, compare: Compare): number {
  at = writeDelimiter(out, at, tag, compareSize(compare));
  at = writeNumberField(out, at, 0x08, compare.result);
  at = writeNumberField(out, at, 0x10, compare.target);
  at = writeLatin1Field(out, at, 0x1a, compare.key);
  at = writeOperand(out, at, compare);
  return writeLatin1Field(out, at, rangeEndTag, compare.rangeEnd);
}
