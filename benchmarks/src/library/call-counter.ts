/** Counts the calls of some methods of some objects, by wrapping them. */
export class CallCounter {
  calls = 0;

  /** A method that calls another counted method counts for two, so only name methods that do not. */
  watch(target: object, methods: readonly string[]): void {
    for (const method of methods) {
      const original: unknown = Reflect.get(target, method);
      if (typeof original !== 'function') throw new Error(`there is no method ${method} to count`);
      Reflect.set(target, method, (...args: unknown[]): unknown => {
        this.calls++;
        return Reflect.apply(original, target, args);
      });
    }
  }
}
