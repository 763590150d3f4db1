/** The kind of error, for programs. The set is closed. A message may change, a code does not. */
export type TenureErrorCode =
  | 'held-elsewhere'
  | 'timed-out'
  | 'lost'
  | 'backend'
  | 'bad-input'
  | 'closed'
  | 'no-members';

const brand = Symbol.for('tenure.error');

/**
 * The base class of all errors of the library. An abort rejects with the reason of its signal instead. `instanceof`
 * also recognises errors of a second installed copy of the library.
 */
export class TenureError extends Error {
  /** Used by `instanceof`, because bundlers change the names of classes. */
  static readonly kind: string = 'TenureError';
  override readonly name: string;
  readonly code: TenureErrorCode;

  constructor(code: TenureErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = new.target.kind;
    this.code = code;
    const kinds: string[] = [];
    for (let type: unknown = new.target; isErrorType(type); type = Object.getPrototypeOf(type)) kinds.push(type.kind);
    Object.defineProperty(this, brand, { value: kinds });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    // A user's subclass without a `kind` matches only its own instances.
    if (!Object.hasOwn(this, 'kind')) return Function.prototype[Symbol.hasInstance].call(this, value);
    return value instanceof Error && ((value as Branded)[brand]?.includes(this.kind) ?? false);
  }
}

interface Branded {
  readonly [brand]?: readonly string[];
}

function isErrorType(type: unknown): type is typeof TenureError {
  return typeof type === 'function' && typeof (type as { kind?: unknown }).kind === 'string';
}
