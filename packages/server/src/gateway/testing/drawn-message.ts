import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { reflect, type ReflectMessage } from '@bufbuild/protobuf/reflect';
import fc from 'fast-check';

/** Sets some fields of a message. */
type Fill = (target: ReflectMessage) => void;

/** Any message of this type, as reflection holds it, with messages in it down to a depth. */
export function drawnMessage(descriptor: DescMessage, depth = 2): fc.Arbitrary<ReflectMessage> {
  return drawnFill(descriptor, depth).map((fill) => filled(descriptor, fill));
}

function filled(descriptor: DescMessage, fill: Fill): ReflectMessage {
  const message = reflect(descriptor);
  fill(message);
  return message;
}

function drawnFill(descriptor: DescMessage, depth: number): fc.Arbitrary<Fill> {
  const fields = descriptor.fields.filter((field) => depth > 0 || field.message === undefined);
  const fills = fields.map((field) => fc.option(drawnField(field, depth), { nil: undefined, freq: 2 }));
  return fc.tuple(...fills).map((drawn) => (target) => drawn.forEach((fill) => fill?.(target)));
}

function drawnField(field: DescField, depth: number): fc.Arbitrary<Fill> {
  if (field.fieldKind !== 'list') return drawnValue(field, depth).map((value) => (target) => target.set(field, value));
  return fc.array(drawnValue(field, depth), { maxLength: 3 }).map((values) => (target) => {
    for (const value of values) target.get(field).add(value);
  });
}

function drawnValue(field: DescField, depth: number): fc.Arbitrary<unknown> {
  if (field.message !== undefined) return drawnMessage(field.message, depth - 1);
  if (field.enum !== undefined)
    return fc.oneof(fc.constantFrom(...field.enum.values.map(({ number }) => number)), fc.nat());
  switch ('scalar' in field ? field.scalar : undefined) {
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.BYTES:
      return fc.uint8Array({ maxLength: 40 });
    case ScalarType.STRING:
      return fc.string({ unit: 'binary', maxLength: 10 });
    case ScalarType.INT32:
      return fc.integer();
    case ScalarType.UINT32:
      return fc.nat();
    case ScalarType.UINT64:
      return fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
    default:
      return fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
  }
}
