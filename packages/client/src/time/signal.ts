/// <reference lib="esnext.disposable" preserve="true" />

/**
 * The AbortSignal type of the program that uses the library, from the types of Node or of the browser. A program with
 * neither compiles against the members declared here.
 */
export type Signal = typeof globalThis extends { AbortSignal: { prototype: infer Found } } ? Found : BareSignal;

interface BareSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: 'abort', listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
  throwIfAborted(): void;
}
