import { isUtf8 } from 'node:buffer';
import { ByteBuffer } from './byte-buffer.ts';
import { quoteByte, SyntaxFault } from './syntax-fault.ts';

// Reason for length: one automaton, whose states and transitions are read together.

/** What a value consists of, in order. `raw` is the text as received, for errors: the beginning of a long one. */
export interface JsonEvents {
  begin(bracket: '{' | '['): void;
  end(bracket: '}' | ']'): void;
  /** The name of a field. The bytes are valid until the call returns. */
  name(utf8: Buffer, raw: string): void;
  string(utf8: Buffer, raw: string): void;
  number(raw: string): void;
  literal(raw: 'true' | 'false' | 'null'): void;
  /** A string that is JSON for etcd's first parser, and not for its second: invalid UTF-8, half a surrogate pair. */
  badString(problem: string): void;
}

/** As etcd: Go's JSON package refuses deeper values. */
const maxJsonDepth = 10_000;
/** How much of a string or number is kept as received. No number that fits into 64 bits needs more. */
const maxRawBytes = 1024;

const state = {
  value: 0,
  valueOrEnd: 1,
  nameOrEnd: 2,
  name: 3,
  colon: 4,
  afterValue: 5,
  string: 6,
  escape: 7,
  hex: 8,
  minus: 9,
  zero: 10,
  digits: 11,
  point: 12,
  fraction: 13,
  exponent: 14,
  exponentSign: 15,
  exponentDigits: 16,
  literal: 17,
} as const;
type State = (typeof state)[keyof typeof state];

const openObject = 0x7b;
const openArray = 0x5b;
const closeObject = 0x7d;
const closeArray = 0x5d;
const quote = 0x22;
const backslash = 0x5c;
const newline = 0x0a;

const escapes: Readonly<Record<number, number>> = {
  0x62: 0x08,
  0x66: 0x0c,
  0x6e: 0x0a,
  0x72: 0x0d,
  0x74: 0x09,
  0x5c: 0x5c,
  0x2f: 0x2f,
  0x22: 0x22,
};

/**
 * Reads JSON values as their bytes arrive, so that a body of any length is never parsed at once and none is held twice:
 * what is kept is the current string. A value is finished by its last bracket, as in Go's decoder, which lets the
 * messages of a stream follow each other without separators. Its errors have the texts of Go's encoding/json.
 */
export class JsonScanner {
  readonly #events: JsonEvents;
  #state: State = state.value;
  /** True inside of an object, false inside of an array; from the outside in. */
  #stack: boolean[] = [];
  #isName = false;
  readonly #text = new ByteBuffer();
  readonly #raw = new ByteBuffer();
  #hasNonAscii = false;
  #hexLeft = 0;
  #codeUnit = 0;
  #highSurrogate = 0;
  #stringProblem: string | undefined;
  #literal: 'true' | 'false' | 'null' = 'null';
  #literalAt = 0;
  /** Since the value began. Positions count characters, as etcd does. */
  #offset = 0;
  #lineStart = 0;
  #continuationBytes = 0;
  #line = 1;
  #tokenLine = 1;
  #tokenColumn = 1;
  #hasBegun = false;
  #isDone = false;

  constructor(events: JsonEvents) {
    this.#events = events;
  }

  /** The value is complete. `next` must be called before more is read. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Some of the value has been read. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  get heldBytes(): number {
    return this.#text.capacity + this.#raw.capacity + this.#stack.length;
  }

  /** Where the token of the current event is, as 'line 1:2'. */
  get place(): string {
    return `line ${this.#tokenLine}:${this.#tokenColumn}`;
  }

  /** Prepares for the next value. */
  next(): void {
    this.#state = state.value;
    this.#stack = [];
    this.#offset = 0;
    this.#lineStart = 0;
    this.#continuationBytes = 0;
    this.#line = 1;
    this.#hasBegun = false;
    this.#isDone = false;
    this.#text.reset();
    this.#raw.reset();
  }

  /**
   * Reads until the value is complete or the bytes end, and returns the number of bytes read. Throws SyntaxFault, after
   * which it may not be used any more.
   */
  read(bytes: Buffer, from = 0): number {
    let at = from;
    while (at < bytes.length && !this.#isDone) {
      if (this.#state === state.string) {
        at = this.#readString(bytes, at);
        continue;
      }
      const byte = bytes[at] as number;
      if (!this.#hasBegun) {
        if (isSpace(byte)) {
          at += 1;
          continue;
        }
        this.#hasBegun = true;
      }
      // The byte after a number outside of any bracket belongs to what follows.
      if (!this.#step(byte)) return at - from;
      this.#advance(byte);
      at += 1;
    }
    return at - from;
  }

  /** No more bytes come. Throws SyntaxFault inside of a value. */
  finish(): void {
    if (!this.#hasBegun || this.#isDone) return;
    const isWhole = this.#stack.length === 0 && this.#isNumberEnd();
    if (!isWhole) throw new SyntaxFault('unexpected EOF');
    this.#endNumber();
  }

  #advance(byte: number): void {
    this.#offset += 1;
    if (byte !== newline) return;
    this.#line += 1;
    this.#lineStart = this.#offset;
    this.#continuationBytes = 0;
  }

  #markToken(): void {
    this.#tokenLine = this.#line;
    this.#tokenColumn = this.#offset - this.#lineStart - this.#continuationBytes + 1;
  }

  /** False when the byte is not part of the value. */
  #step(byte: number): boolean {
    switch (this.#state) {
      case state.value:
        this.#beginValue(byte);
        return true;
      case state.valueOrEnd:
        if (byte === closeArray) this.#close(byte);
        else this.#beginValue(byte);
        return true;
      case state.nameOrEnd:
        if (byte === closeObject) this.#close(byte);
        else this.#beginName(byte);
        return true;
      case state.name:
        this.#beginName(byte);
        return true;
      case state.colon:
        if (isSpace(byte)) return true;
        if (byte !== 0x3a) throw unexpected(byte, 'after object key');
        this.#state = state.value;
        return true;
      case state.afterValue:
        this.#continue(byte);
        return true;
      case state.escape:
        this.#escape(byte);
        return true;
      case state.hex:
        this.#hex(byte);
        return true;
      case state.literal:
        this.#continueLiteral(byte);
        return true;
      default:
        return this.#continueNumber(byte);
    }
  }

  #beginValue(byte: number): void {
    if (isSpace(byte)) return;
    this.#markToken();
    switch (byte) {
      case openObject:
      case openArray:
        this.#stack.push(byte === openObject);
        if (this.#stack.length > maxJsonDepth) throw unexpected(byte, 'exceeded max depth');
        this.#state = byte === openObject ? state.nameOrEnd : state.valueOrEnd;
        this.#events.begin(byte === openObject ? '{' : '[');
        return;
      case quote:
        this.#beginString(false);
        return;
      case 0x74:
        this.#beginLiteral('true');
        return;
      case 0x66:
        this.#beginLiteral('false');
        return;
      case 0x6e:
        this.#beginLiteral('null');
        return;
      default:
        this.#beginNumber(byte);
    }
  }

  #beginName(byte: number): void {
    if (isSpace(byte)) return;
    if (byte !== quote) throw unexpected(byte, 'looking for beginning of object key string');
    this.#markToken();
    this.#beginString(true);
  }

  #continue(byte: number): void {
    if (isSpace(byte)) return;
    const inObject = this.#stack.at(-1) === true;
    if (byte === 0x2c) this.#state = inObject ? state.name : state.value;
    else if (byte === (inObject ? closeObject : closeArray)) this.#close(byte);
    else throw unexpected(byte, inObject ? 'after object key:value pair' : 'after array element');
  }

  #close(byte: number): void {
    this.#markToken();
    this.#stack.pop();
    this.#events.end(byte === closeObject ? '}' : ']');
    this.#endValue();
  }

  #endValue(): void {
    this.#state = state.afterValue;
    if (this.#stack.length === 0) this.#isDone = true;
  }

  #beginString(isName: boolean): void {
    this.#state = state.string;
    this.#isName = isName;
    this.#text.reset();
    this.#raw.reset();
    this.#raw.push(quote);
    this.#hasNonAscii = false;
    this.#highSurrogate = 0;
    this.#stringProblem = undefined;
  }

  /** Reads to the end of the string, of its part without escapes, or of the bytes. Returns the position there. */
  #readString(bytes: Buffer, from: number): number {
    let at = from;
    let continuationBytes = 0;
    let byte = 0;
    for (; at < bytes.length; at++) {
      byte = bytes[at] as number;
      if (byte === quote || byte === backslash || byte < 0x20) break;
      if (byte >= 0x80) {
        this.#hasNonAscii = true;
        if (byte < 0xc0) continuationBytes += 1;
      }
    }
    if (at > from) {
      if (this.#highSurrogate !== 0) this.#halfSurrogate();
      this.#text.append(bytes, from, at);
      this.#keepRaw(bytes, from, at);
      this.#offset += at - from;
      this.#continuationBytes += continuationBytes;
    }
    if (at === bytes.length) return at;
    if (byte < 0x20) throw unexpected(byte, 'in string literal');
    this.#keepRaw(bytes, at, at + 1);
    this.#offset += 1;
    if (byte === backslash) this.#state = state.escape;
    else this.#endString();
    return at + 1;
  }

  #keepRaw(bytes: Buffer, from: number, to: number): void {
    const room = maxRawBytes - this.#raw.length;
    if (room > 0) this.#raw.append(bytes, from, Math.min(to, from + room));
  }

  #escape(byte: number): void {
    if (this.#raw.length < maxRawBytes) this.#raw.push(byte);
    if (byte === 0x75) {
      this.#state = state.hex;
      this.#hexLeft = 4;
      this.#codeUnit = 0;
      return;
    }
    const character = escapes[byte];
    if (character === undefined) throw unexpected(byte, 'in string escape code');
    if (this.#highSurrogate !== 0) this.#halfSurrogate();
    this.#text.push(character);
    this.#state = state.string;
  }

  #hex(byte: number): void {
    const digit = hexDigit(byte);
    if (digit < 0) throw unexpected(byte, String.raw`in \u hexadecimal character escape`);
    if (this.#raw.length < maxRawBytes) this.#raw.push(byte);
    this.#codeUnit = this.#codeUnit * 16 + digit;
    this.#hexLeft -= 1;
    if (this.#hexLeft > 0) return;
    this.#state = state.string;
    this.#addCodeUnit(this.#codeUnit);
  }

  #addCodeUnit(unit: number): void {
    const high = this.#highSurrogate;
    const isLow = unit >= 0xdc00 && unit < 0xe000;
    if (high !== 0 && isLow) {
      this.#highSurrogate = 0;
      this.#text.pushCodePoint(((high - 0xd800) << 10) + (unit - 0xdc00) + 0x10000);
      return;
    }
    if (high !== 0 || isLow) this.#halfSurrogate();
    if (unit >= 0xd800 && unit < 0xdc00) this.#highSurrogate = unit;
    else this.#text.pushCodePoint(unit);
  }

  #halfSurrogate(): void {
    this.#highSurrogate = 0;
    this.#stringProblem ??= 'invalid escape code in string';
  }

  #endString(): void {
    if (this.#highSurrogate !== 0) this.#halfSurrogate();
    const text = this.#text.view();
    if (this.#hasNonAscii && !isUtf8(text)) this.#stringProblem ??= 'invalid UTF-8 in string';
    const raw = this.#rawText();
    if (this.#stringProblem !== undefined) this.#events.badString(this.#stringProblem);
    else if (this.#isName) this.#events.name(text, raw);
    else this.#events.string(text, raw);
    // A string of megabytes is not kept for the short ones that follow.
    this.#text.reset();
    if (this.#isName) this.#state = state.colon;
    else this.#endValue();
  }

  #rawText(): string {
    const text = this.#raw.view().toString();
    return this.#raw.length < maxRawBytes ? text : `${text}...`;
  }

  #beginLiteral(text: 'true' | 'false' | 'null'): void {
    this.#state = state.literal;
    this.#literal = text;
    this.#literalAt = 1;
  }

  #continueLiteral(byte: number): void {
    const text = this.#literal;
    if (byte !== text.charCodeAt(this.#literalAt)) {
      throw unexpected(byte, `in literal ${text} (expecting '${text[this.#literalAt] ?? ''}')`);
    }
    this.#literalAt += 1;
    if (this.#literalAt < text.length) return;
    this.#events.literal(text);
    this.#endValue();
  }

  #beginNumber(byte: number): void {
    this.#raw.reset();
    if (byte === 0x2d) this.#state = state.minus;
    else if (byte === 0x30) this.#state = state.zero;
    else if (isDigit(byte)) this.#state = state.digits;
    else throw unexpected(byte, 'looking for beginning of value');
    this.#raw.push(byte);
  }

  #continueNumber(byte: number): boolean {
    const next = this.#numberStateAfter(byte);
    if (next !== undefined) {
      this.#state = next;
      if (this.#raw.length < maxRawBytes) this.#raw.push(byte);
      return true;
    }
    this.#endNumber();
    if (this.#isDone) return false;
    this.#continue(byte);
    return true;
  }

  /** Undefined after the last byte of the number. */
  #numberStateAfter(byte: number): State | undefined {
    const isExponent = byte === 0x65 || byte === 0x45;
    switch (this.#state) {
      case state.minus:
        if (byte === 0x30) return state.zero;
        if (isDigit(byte)) return state.digits;
        throw unexpected(byte, 'in numeric literal');
      case state.digits:
        if (isDigit(byte)) return state.digits;
        return byte === 0x2e ? state.point : isExponent ? state.exponent : undefined;
      case state.zero:
        return byte === 0x2e ? state.point : isExponent ? state.exponent : undefined;
      case state.point:
        if (isDigit(byte)) return state.fraction;
        throw unexpected(byte, 'after decimal point in numeric literal');
      case state.fraction:
        return isDigit(byte) ? state.fraction : isExponent ? state.exponent : undefined;
      case state.exponent:
        if (byte === 0x2b || byte === 0x2d) return state.exponentSign;
        if (isDigit(byte)) return state.exponentDigits;
        throw unexpected(byte, 'in exponent of numeric literal');
      case state.exponentSign:
        if (isDigit(byte)) return state.exponentDigits;
        throw unexpected(byte, 'in exponent of numeric literal');
      default:
        return isDigit(byte) ? state.exponentDigits : undefined;
    }
  }

  #isNumberEnd(): boolean {
    const now = this.#state;
    return now === state.zero || now === state.digits || now === state.fraction || now === state.exponentDigits;
  }

  #endNumber(): void {
    this.#events.number(this.#rawText());
    this.#endValue();
  }
}

function unexpected(byte: number, where: string): SyntaxFault {
  return new SyntaxFault(`invalid character ${quoteByte(byte)} ${where}`);
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function hexDigit(byte: number): number {
  if (isDigit(byte)) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}
