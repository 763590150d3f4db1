/// <reference lib="esnext.disposable" preserve="true" />

/**
 * The AbortSignal of the program that uses the library: the one of Node's or of the browser's types, whichever is
 * there. A program with neither still compiles against this much of it.
 */
export type Signal = typeof globalThis extends { AbortSignal: { prototype: infer Found } } ? Found : BareSignal;

interface BareSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
  throwIfAborted(): void;
}
