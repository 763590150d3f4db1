import type { DescMessage } from '@bufbuild/protobuf';
import { bytesOf } from './bytes-of.ts';
import { integerOf } from './integer-of.ts';
import { type JsonEvents, JsonScanner } from './json-scanner.ts';
import { type FieldPlan, type MessagePlan, messagePlan } from './message-plan.ts';
import { SyntaxFault } from './syntax-fault.ts';
import { WireMessage } from './wire-message.ts';

// Reason for length: the reaction to each kind of token, in the order in which Go's protojson checks them.

/**
 * What may come next, and where it goes: one for each open bracket. `seen` has each field of the message at most once.
 */
type Frame =
  | { readonly kind: 'message'; readonly plan: MessagePlan; readonly seen: (number | string)[]; field: Awaited }
  | { readonly kind: 'list'; readonly field: FieldPlan; isOpen: boolean }
  | { readonly kind: 'skipped' };

/** The field whose value comes next, or 'unknown'. */
type Awaited = FieldPlan | 'unknown' | undefined;

/** The bytes of a message, or its size when it is too large. */
export type DecodedRequest =
  | { readonly kind: 'message'; readonly bytes: Buffer }
  | { readonly kind: 'tooLarge'; readonly bytes: number };

/**
 * Converts JSON to protobuf as it arrives, without a message in between, by the rules of Go's protojson with unknown
 * fields ignored, as etcd sets it. When a value is valid JSON and no message, it is read to its end before it is
 * refused: etcd checks the JSON first.
 */
export class RequestDecoder implements JsonEvents {
  readonly #plan: MessagePlan;
  readonly #scanner = new JsonScanner(this);
  readonly #wire: WireMessage;
  #frames: Frame[] = [];
  /** What is wrong with the message, though it is JSON. */
  #fault: string | undefined;
  /** The last known name, for errors. */
  #nameRaw = '';
  #namePlace = '';

  constructor(descriptor: DescMessage, maxMessageBytes: number) {
    this.#plan = messagePlan(descriptor);
    this.#wire = new WireMessage(maxMessageBytes);
  }

  get isDone(): boolean {
    return this.#scanner.isDone;
  }

  get heldBytes(): number {
    return this.#scanner.heldBytes + this.#wire.heldBytes + 128 * this.#frames.length;
  }

  /** Reads until a message is complete or the bytes end, and returns the number of bytes read. Throws SyntaxFault. */
  read(bytes: Buffer, from = 0): number {
    return this.#scanner.read(bytes, from);
  }

  /** No more bytes come. False when there was no message. Throws SyntaxFault when there is half of one. */
  finish(): boolean {
    this.#scanner.finish();
    return this.#scanner.isDone;
  }

  /** The complete message; afterwards the next can be read. Throws SyntaxFault when the value is not that message. */
  take(): DecodedRequest {
    this.#scanner.next();
    this.#frames = [];
    const fault = this.#fault;
    this.#fault = undefined;
    try {
      if (fault !== undefined) throw new SyntaxFault(`proto: ${fault}`);
      if (this.#wire.isTooLarge) return { kind: 'tooLarge', bytes: this.#wire.size };
      return { kind: 'message', bytes: this.#wire.finish() };
    } finally {
      this.#wire.reset();
    }
  }

  begin(bracket: '{' | '['): void {
    if (this.#fault !== undefined) return;
    const target = this.#target();
    if (target === 'unknown') this.#frames.push({ kind: 'skipped' });
    else if (bracket === '[') this.#beginList(target);
    else this.#beginMessage(target);
  }

  end(): void {
    if (this.#fault !== undefined) return;
    const frame = this.#frames.pop();
    // The outermost message has no length, and an empty list is not written.
    if (frame?.kind === 'message' ? this.#frames.length > 0 : frame?.kind === 'list' && frame.isOpen) this.#wire.end();
  }

  name(utf8: Buffer, raw: string): void {
    const frame = this.#frames.at(-1);
    if (this.#fault !== undefined || frame?.kind !== 'message') return;
    // A name of megabytes is not even converted to text.
    const field = utf8.length > frame.plan.longestNameBytes ? undefined : frame.plan.byName.get(utf8.toString());
    frame.field = field ?? 'unknown';
    if (field === undefined) return;
    if (frame.seen.includes(field.index)) this.#refuse(`(${this.#scanner.place}): duplicate field ${raw}`);
    frame.seen.push(field.index);
    this.#nameRaw = raw;
    this.#namePlace = this.#scanner.place;
  }

  string(utf8: Buffer, raw: string): void {
    const field = this.#scalarTarget(raw);
    if (field === undefined) return;
    switch (field.kind) {
      case 'string':
        this.#wireBytes(field, utf8);
        return;
      case 'bytes': {
        const bytes = bytesOf(utf8);
        if (bytes === undefined) this.#invalid(field, raw);
        else this.#wireBytes(field, bytes);
        return;
      }
      case 'enum': {
        // An unknown name is ignored like an unknown field.
        const number = field.enumNumbers.get(utf8.toString());
        if (number !== undefined) this.#wireInteger(field, BigInt(number));
        return;
      }
      case 'bool':
        this.#invalid(field, raw);
        return;
      default: {
        const text = utf8.toString();
        this.#integer(field, text.trim() === text ? integerOf(text) : undefined, raw);
      }
    }
  }

  number(raw: string): void {
    const field = this.#scalarTarget(raw);
    if (field === undefined) return;
    if (field.kind === 'bool' || field.kind === 'bytes' || field.kind === 'string') this.#invalid(field, raw);
    else this.#integer(field, integerOf(raw), raw);
  }

  literal(raw: 'true' | 'false' | 'null'): void {
    const frame = this.#frames.at(-1);
    if (raw === 'null' && frame?.kind === 'message') {
      frame.field = undefined;
      return;
    }
    const field = this.#scalarTarget(raw);
    if (field === undefined) return;
    if (field.kind !== 'bool' || raw === 'null') this.#invalid(field, raw);
    else this.#wireInteger(field, raw === 'true' ? 1n : 0n);
  }

  badString(problem: string): void {
    this.#refuse(`syntax error (${this.#scanner.place}): ${problem}`);
  }

  /** Only the first fault counts. */
  #refuse(text: string): void {
    this.#fault ??= text;
  }

  #unexpected(raw: string): void {
    this.#refuse(`syntax error (${this.#scanner.place}): unexpected token ${raw}`);
  }

  #invalid(field: FieldPlan, raw: string): void {
    this.#refuse(`(${this.#scanner.place}): invalid value for ${field.kind} field ${field.jsonName}: ${raw}`);
  }

  /** The field that the next value is for; undefined for the message itself. */
  #target(): FieldPlan | 'unknown' | undefined {
    const frame = this.#frames.at(-1);
    if (frame === undefined) return undefined;
    if (frame.kind === 'skipped') return 'unknown';
    return frame.kind === 'list' ? frame.field : frame.field;
  }

  #beginList(field: FieldPlan | undefined): void {
    const frame = this.#frames.at(-1);
    if (field === undefined || frame?.kind === 'list' || !field.isList) {
      // A list where one value is expected.
      if (field !== undefined && frame?.kind !== 'list' && this.#isOneofTaken(field)) return;
      if (field === undefined || field.kind === 'message') this.#unexpected('[');
      else this.#invalid(field, '[');
      return;
    }
    this.#frames.push({ kind: 'list', field, isOpen: false });
  }

  #beginMessage(field: FieldPlan | undefined): void {
    const plan = field === undefined ? this.#plan : field.message;
    const inList = this.#frames.at(-1)?.kind === 'list';
    if (field !== undefined) {
      if (field.isList && !inList) return this.#unexpected('{');
      if (!inList && this.#isOneofTaken(field)) return;
      if (plan === undefined) return this.#invalid(field, '{');
      this.#wire.begin(field.number);
    }
    if (plan !== undefined) this.#frames.push({ kind: 'message', plan, seen: [], field: undefined });
  }

  /** Refuses a second field of a oneof. */
  #isOneofTaken(field: FieldPlan): boolean {
    const frame = this.#frames.at(-1);
    if (field.oneof === undefined || frame?.kind !== 'message') return false;
    if (frame.seen.includes(field.oneof)) {
      this.#refuse(`(${this.#namePlace}): error parsing ${this.#nameRaw}, oneof ${field.oneof} is already set`);
      return true;
    }
    frame.seen.push(field.oneof);
    return false;
  }

  /** The field that a scalar is for. Undefined when it is ignored or refused. */
  #scalarTarget(raw: string): FieldPlan | undefined {
    if (this.#fault !== undefined) return undefined;
    const field = this.#target();
    if (field === 'unknown') return undefined;
    const inList = this.#frames.at(-1)?.kind === 'list';
    if (field === undefined || (field.isList && !inList)) {
      this.#unexpected(raw);
      return undefined;
    }
    if (!inList && this.#isOneofTaken(field)) return undefined;
    if (field.kind === 'message') {
      this.#unexpected(raw);
      return undefined;
    }
    return field;
  }

  #integer(field: FieldPlan, value: bigint | undefined, raw: string): void {
    const bits = field.kind === 'int64' || field.kind === 'uint64' || field.kind === 'sint64' ? 64 : 32;
    const isUnsigned = field.kind === 'uint64' || field.kind === 'uint32';
    const fits =
      value !== undefined &&
      (isUnsigned ? value >= 0n && BigInt.asUintN(bits, value) === value : BigInt.asIntN(bits, value) === value);
    if (fits) this.#wireInteger(field, value);
    else this.#invalid(field, raw);
  }

  #wireInteger(field: FieldPlan, value: bigint): void {
    const unsigned = BigInt.asUintN(64, field.kind === 'sint64' ? (value << 1n) ^ (value >> 63n) : value);
    const frame = this.#frames.at(-1);
    if (frame?.kind === 'list') {
      if (!frame.isOpen) this.#wire.begin(field.number);
      frame.isOpen = true;
      this.#wire.bareVarint64(unsigned);
    } else if (unsigned !== 0n || field.oneof !== undefined) {
      this.#wire.varint64(field.number, unsigned);
    }
  }

  #wireBytes(field: FieldPlan, bytes: Uint8Array): void {
    if (bytes.length > 0 || field.oneof !== undefined || field.isList) this.#wire.bytes(field.number, bytes);
  }
}
