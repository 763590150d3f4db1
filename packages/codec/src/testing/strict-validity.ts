import type { DescField, DescMessage } from '@bufbuild/protobuf';

/*
 * Whether bytes are a valid message, by the rules of the hand-written decoders, in the simplest way: slices and
 * bigints. It decodes nothing.
 */

const maxGroups = 100;

class Invalid extends Error {}

function takeVarint(bytes: Buffer): { readonly value: bigint; readonly rest: Buffer } {
  const last = bytes.findIndex((byte) => byte < 0x80);
  if (last < 0 || last > 9) throw new Invalid();
  let value = 0n;
  for (let i = last; i >= 0; i--) value = (value << 7n) | BigInt(bytes[i]! & 0x7f);
  return { value: BigInt.asUintN(64, value), rest: bytes.subarray(last + 1) };
}

function drop(bytes: Buffer, count: bigint): Buffer {
  if (count > BigInt(bytes.length)) throw new Invalid();
  return bytes.subarray(Number(count));
}

/** Removes the content of a field. `groups` are the numbers of the enclosing groups. */
function takeContent(bytes: Buffer, field: number, wireType: number, groups: readonly number[]): Buffer {
  switch (wireType) {
    case 0:
      return takeVarint(bytes).rest;
    case 1:
      return drop(bytes, 8n);
    case 2: {
      const { value, rest } = takeVarint(bytes);
      return drop(rest, value);
    }
    case 3:
      return takeGroup(bytes, [...groups, field]);
    case 5:
      return drop(bytes, 4n);
    default:
      throw new Invalid();
  }
}

function takeGroup(bytes: Buffer, groups: readonly number[]): Buffer {
  if (groups.length > maxGroups) throw new Invalid();
  let rest = bytes;
  for (;;) {
    const { field, wireType, rest: afterTag } = takeTag(rest);
    if (wireType === 4) {
      if (field !== groups.at(-1)) throw new Invalid();
      return afterTag;
    }
    rest = takeContent(afterTag, field, wireType, groups);
  }
}

function takeTag(bytes: Buffer): { readonly field: number; readonly wireType: number; readonly rest: Buffer } {
  const { value, rest } = takeVarint(bytes);
  if (bytes.length - rest.length > 5 || value >= 2n ** 32n || value < 8n) throw new Invalid();
  return { field: Number(value >> 3n), wireType: Number(value & 7n), rest };
}

function checkField(field: DescField, content: Buffer): void {
  if (field.message !== undefined) check(field.message, content);
  else if (field.fieldKind === 'scalar' && field.scalar === 9 && !isUtf8(content)) throw new Invalid();
}

function isUtf8(content: Buffer): boolean {
  return Buffer.from(content.toString('utf8'), 'utf8').equals(content);
}

function isDelimited(field: DescField): boolean {
  return field.message !== undefined || (field.fieldKind === 'scalar' && (field.scalar === 9 || field.scalar === 12));
}

/** The lists of numbers in our messages are all of varints. */
function checkPacked(content: Buffer): void {
  let rest = content;
  while (rest.length > 0) rest = takeVarint(rest).rest;
}

function check(schema: DescMessage, bytes: Buffer): void {
  let rest = bytes;
  while (rest.length > 0) {
    const { field: number, wireType, rest: afterTag } = takeTag(rest);
    rest = takeContent(afterTag, number, wireType, []);
    const field = schema.fields.find((candidate) => candidate.number === number);
    if (field === undefined) continue;
    const isPacked = field.fieldKind === 'list' && !isDelimited(field) && wireType === 2;
    if (!isPacked && wireType !== (isDelimited(field) ? 2 : 0)) throw new Invalid();
    if (wireType !== 2) continue;
    const { value, rest: after } = takeVarint(afterTag);
    const content = after.subarray(0, Number(value));
    if (isPacked) checkPacked(content);
    else checkField(field, content);
  }
}

export function strictlyValid(schema: DescMessage, bytes: Buffer): boolean {
  try {
    check(schema, bytes);
    return true;
  } catch (error) {
    if (error instanceof Invalid) return false;
    throw error;
  }
}
