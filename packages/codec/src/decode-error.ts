/**
 * - Truncated: the bytes end inside a field, or a field ends outside the message it belongs to.
 * - Overflow: a varint has more than 10 bytes, or a tag more than 32 bits.
 * - NegativeLength: the length of a field, as an int64, is negative.
 * - IllegalTag: field number 0, wire type 6 or 7, the end of a group that was never begun, or groups too deep.
 * - WrongWireType: a field that is known came in a wire type that is not its own.
 * - TooDeep: messages nest deeper than the limit.
 * - TooManyFields: a request has more fields than a client has a use for.
 * - InvalidText: a string is not UTF-8.
 * - Malformed: a generated message refused the bytes; the cause says why.
 */
export type DecodeErrorCode =
  | 'Truncated'
  | 'Overflow'
  | 'NegativeLength'
  | 'IllegalTag'
  | 'WrongWireType'
  | 'TooDeep'
  | 'TooManyFields'
  | 'InvalidText'
  | 'Malformed';

/** The texts of Go's decoders, which clients of etcd know. Those of two codes depend on the field: see checkMessage. */
const explanations: Readonly<Record<DecodeErrorCode, string>> = {
  Truncated: 'unexpected EOF',
  Overflow: 'proto: integer overflow',
  NegativeLength: 'proto: negative length found during unmarshaling',
  IllegalTag: 'proto: illegal tag',
  WrongWireType: 'proto: wrong wireType for a known field',
  TooDeep: 'proto: exceeded max recursion depth',
  TooManyFields: 'proto: too many fields',
  InvalidText: 'string field contains invalid UTF-8',
  Malformed: 'proto: cannot parse invalid wire-format data',
};

/** The bytes are not a valid message. A retry with the same bytes has no use. */
export class DecodeError extends Error {
  readonly code: DecodeErrorCode;

  /** `text`: replaces the code's own. */
  constructor(code: DecodeErrorCode, { text, cause }: { readonly text?: string; readonly cause?: unknown } = {}) {
    super(text ?? explanations[code], cause === undefined ? undefined : { cause });
    this.name = 'DecodeError';
    this.code = code;
  }
}
