import type { DescField, DescMessage } from '@bufbuild/protobuf';
import fc from 'fast-check';

/*
 * Bytes that no encoder writes and every decoder must read: fields in any order and number, numbers with redundant
 * bytes, unknown fields of every wire type in between; and then damage to them.
 */

const maxNesting = 3;

/** A varint of the 64 bits of `value` with up to `padding` redundant bytes, ten in all at most. */
function varint(value: bigint, padding = 0): number[] {
  const out: number[] = [];
  let rest = BigInt.asUintN(64, value);
  do {
    out.push(Number(rest & 0x7fn));
    rest >>= 7n;
  } while (rest > 0n);
  while (out.length < 10 && padding-- > 0) out.push(0);
  return out.map((byte, index) => (index < out.length - 1 ? byte | 0x80 : byte));
}

const paddedVarint = fc
  .tuple(
    fc.oneof(
      fc.bigInt({ min: 0n, max: 5n }),
      fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      fc.constantFrom(2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 63n, 2n ** 63n - 1n, 2n ** 64n - 1n),
    ),
    fc.oneof({ weight: 5, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(10) }),
  )
  .map(([value, padding]) => varint(value, padding));

function delimited(content: readonly number[]): number[] {
  return [...varint(BigInt(content.length)), ...content];
}

function tag(field: number, wireType: number): number[] {
  return varint(BigInt(field * 8 + wireType));
}

const content = fc.uint8Array({ maxLength: 20 }).map((bytes) => [...bytes]);

/** A field that no message has: 20 to 60, or large. */
const unknownField: fc.Arbitrary<number[]> = fc.letrec<{ one: number[] }>((tie) => ({
  one: fc.oneof(fc.integer({ min: 20, max: 60 }), fc.constantFrom(1006, 19_000, 2 ** 29 - 1)).chain((field) =>
    fc.oneof(
      { maxDepth: 3 },
      paddedVarint.map((value) => [...tag(field, 0), ...value]),
      fc.uint8Array({ minLength: 8, maxLength: 8 }).map((bytes) => [...tag(field, 1), ...bytes]),
      content.map((bytes) => [...tag(field, 2), ...delimited(bytes)]),
      fc.uint8Array({ minLength: 4, maxLength: 4 }).map((bytes) => [...tag(field, 5), ...bytes]),
      fc.array(tie('one'), { maxLength: 3 }).map((inner) => [...tag(field, 3), ...inner.flat(), ...tag(field, 4)]),
    ),
  ),
})).one;

function knownField(field: DescField, depth: number): fc.Arbitrary<number[]> {
  if (field.message !== undefined) {
    return messageSoup(field.message, depth + 1).map((bytes) => [...tag(field.number, 2), ...delimited(bytes)]);
  }
  if (field.fieldKind === 'scalar' && field.scalar === 12) {
    return content.map((bytes) => [...tag(field.number, 2), ...delimited(bytes)]);
  }
  if (field.fieldKind === 'scalar' && field.scalar === 9) {
    return fc
      .string({ unit: 'binary', maxLength: 10 })
      .map((text) => [...tag(field.number, 2), ...delimited([...Buffer.from(text)])]);
  }
  const one = paddedVarint.map((value) => [...tag(field.number, 0), ...value]);
  if (field.fieldKind !== 'list') return one;
  const packed = fc.array(paddedVarint, { maxLength: 5 });
  return fc.oneof(
    one,
    packed.map((values) => [...tag(field.number, 2), ...delimited(values.flat())]),
  );
}

function messageSoup(schema: DescMessage, depth: number): fc.Arbitrary<number[]> {
  const fields = schema.fields.filter((field) => depth < maxNesting || field.message === undefined);
  const known = fields.map((field) => ({ weight: 3, arbitrary: knownField(field, depth) }));
  return fc
    .array(fc.oneof({ weight: 1, arbitrary: unknownField }, ...known), { maxLength: 8 })
    .map((all) => all.flat());
}

/** Valid bytes of the message. */
export function wireSoup(schema: DescMessage): fc.Arbitrary<Buffer> {
  return messageSoup(schema, 0).map((bytes) => Buffer.from(bytes));
}

type Damage = (bytes: Buffer) => Buffer;

function at(bytes: Buffer, place: number): number {
  return bytes.length === 0 ? 0 : place % bytes.length;
}

const damage: fc.Arbitrary<Damage> = fc
  .tuple(fc.nat(1_000_000), fc.oneof(fc.constantFrom(0, 0x7f, 0x80, 0xff, 0x0b, 0x0c), fc.nat(255)), fc.nat(4))
  .map(([place, byte, kind]): Damage => {
    switch (kind) {
      case 0:
        return (bytes) => bytes.subarray(0, at(bytes, place));
      case 1:
        return (bytes) => bytes.map((old, index) => (index === at(bytes, place) ? byte : old)) as Buffer;
      case 2:
        return (bytes) => Buffer.concat([bytes.subarray(0, at(bytes, place)), bytes.subarray(at(bytes, place) + 1)]);
      case 3:
        return (bytes) =>
          Buffer.concat([bytes.subarray(0, at(bytes, place)), Buffer.of(byte), bytes.subarray(at(bytes, place))]);
      default:
        return (bytes) => Buffer.concat([bytes, Buffer.alloc(1 + (place % 11), byte)]);
    }
  });

/** Bytes that were once valid, or random ones. */
export function damagedSoup(schema: DescMessage): fc.Arbitrary<Buffer> {
  const damaged = fc
    .tuple(wireSoup(schema), fc.array(damage, { minLength: 1, maxLength: 3 }))
    .map(([bytes, damages]) => damages.reduce((so, apply) => Buffer.from(apply(so)), bytes));
  const random = fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes));
  return fc.oneof({ weight: 9, arbitrary: damaged }, { weight: 1, arbitrary: random });
}
