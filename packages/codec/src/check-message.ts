import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { firstExtensionNumber } from '@tenure/protocol';
import { DecodeError } from './decode-error.ts';
import { maxTxnDepth } from './txn-depth.ts';
import { WireReader } from './wire-reader.ts';

const wireVarint = 0;
const wireFixed64 = 1;
const wireBytes = 2;
const wireGroupStart = 3;
const wireGroupEnd = 4;
const wireFixed32 = 5;

/** A tag and a number of one byte each. */
const smallestFieldBytes = 2;

/** The nesting around a transaction: operations are separate messages. */
const messagesATxn = 2;
const maxMessageDepth = messagesATxn * (maxTxnDepth + 1);

/** What a check may still read. */
interface Looks {
  left: number;
}

/**
 * Checks whether bytes are a valid message, by the rule for every request, and with etcd's error texts. Throws
 * DecodeError.
 *
 * The hand-written codecs follow the same rule while they read. Bytes that they refuse are checked again here for the
 * text, since only the schema knows the names.
 *
 * `maxFields`: of all nested messages together, including the numbers of packed fields and the fields of groups. A
 * message with more is refused, unlike in etcd.
 */
export function checkMessage(schema: DescMessage, bytes: Uint8Array, maxFields = Infinity): void {
  const reader = new WireReader(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  checkFields(reader, schema, 1, { left: maxFields });
}

/** The same error with the names that a hand-written codec does not know. */
export function withNames(error: DecodeError, schema: DescMessage, bytes: Uint8Array): DecodeError {
  if (error.code !== 'WrongWireType' && error.code !== 'IllegalTag') return error;
  try {
    checkMessage(schema, bytes);
  } catch (named) {
    if (named instanceof DecodeError) return named;
    throw named;
  }
  return error;
}

function checkFields(reader: WireReader, schema: DescMessage, depth: number, looks: Looks): void {
  if (depth > maxMessageDepth) throw new DecodeError('TooDeep');
  while (reader.at < reader.end) {
    const tag = reader.tag();
    const wireType = tag & 7;
    const number = tag >>> 3;
    if (wireType === wireGroupEnd) {
      throw new DecodeError('IllegalTag', { text: `proto: ${schema.name}: wiretype end group for non-group` });
    }
    if (number === 0) {
      throw new DecodeError('IllegalTag', { text: `proto: ${schema.name}: illegal tag 0 (wire type ${wireType})` });
    }
    take(looks, 1);
    const field = schema.fields.find((each) => each.number === number);
    if (field === undefined) {
      const start = reader.at;
      reader.skip(tag);
      if (wireType === wireGroupStart) take(looks, (reader.at - start) / smallestFieldBytes);
    } else {
      checkField(reader, field, tag, depth, looks);
    }
  }
}

function take(looks: Looks, fields: number): void {
  looks.left -= fields;
  if (looks.left < 0) throw new DecodeError('TooManyFields');
}

function checkField(reader: WireReader, field: DescField, tag: number, depth: number, looks: Looks): void {
  const wireType = tag & 7;
  const own = wireTypeOf(field);
  const isPacked = field.fieldKind === 'list' && own !== wireBytes && wireType === wireBytes;
  if (wireType !== own && !isPacked) {
    const text = `proto: wrong wireType = ${wireType} for field ${goName(field)}`;
    throw new DecodeError('WrongWireType', { text });
  }
  if (isPacked) {
    const outer = reader.enter();
    while (reader.at < reader.end) {
      take(looks, 1);
      reader.skip((field.number << 3) | own);
    }
    reader.leave(outer);
  } else if (field.message !== undefined) {
    const outer = reader.enter();
    checkFields(reader, field.message, depth + 1, looks);
    reader.leave(outer);
  } else if (isOurText(field)) {
    reader.utf8();
  } else {
    reader.skip(tag);
  }
}

/** etcd accepts any bytes for known strings, and leaves validation to the code that uses them. */
function isOurText({ number, scalar }: DescField): boolean {
  return number >= firstExtensionNumber && scalar === ScalarType.STRING;
}

function wireTypeOf({ message, scalar }: DescField): number {
  if (message !== undefined) return wireBytes;
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return wireBytes;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return wireFixed64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return wireFixed32;
    default:
      return wireVarint;
  }
}

/** 'range_end' is RangeEnd in Go, whose texts these are. */
function goName({ name }: DescField): string {
  return name.replace(/(?:^|_)([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}
