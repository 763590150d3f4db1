/**
 * - Truncated: the bytes end inside a field, or a field ends outside the message it belongs to.
 * - Overflow: a varint has more than 10 bytes, or a tag more than 32 bits.
 * - IllegalTag: field number 0, wire type 6 or 7, or the end of a group that was never begun.
 * - WrongWireType: a field that is known came in a wire type that is not its own.
 * - TooDeep: messages or groups nest deeper than the limit.
 * - InvalidText: a string is not UTF-8.
 * - Malformed: a generated message refused the bytes; the cause says why.
 */
export type DecodeErrorCode =
  | 'Truncated'
  | 'Overflow'
  | 'IllegalTag'
  | 'WrongWireType'
  | 'TooDeep'
  | 'InvalidText'
  | 'Malformed';

const explanations: Readonly<Record<DecodeErrorCode, string>> = {
  Truncated: 'the message ends inside a field',
  Overflow: 'a number has more bytes than its type allows',
  IllegalTag: 'a field has an illegal number or wire type',
  WrongWireType: 'a known field has the wrong wire type',
  TooDeep: 'the message nests too deep',
  InvalidText: 'a string is not valid UTF-8',
  Malformed: 'the message is malformed',
};

/** The bytes are not the message that they should be. Sending them again is of no use. */
export class DecodeError extends Error {
  readonly code: DecodeErrorCode;

  constructor(code: DecodeErrorCode, cause?: unknown) {
    super(`protobuf: ${explanations[code]}`, cause === undefined ? undefined : { cause });
    this.name = 'DecodeError';
    this.code = code;
  }
}
