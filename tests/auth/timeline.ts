interface Change<Value> {
  readonly value: Value;
  readonly beganMs: number;
  /** Infinity until it was acknowledged. */
  ackedMs: number;
}

/** A fact that one client changes, one change after the other, and what others may see of it meanwhile. */
export class Timeline<Value> {
  readonly #changes: Change<Value>[];

  constructor(first: Value) {
    this.#changes = [{ value: first, beganMs: -Infinity, ackedMs: -Infinity }];
  }

  get last(): Value {
    return (this.#changes.at(-1) as Change<Value>).value;
  }

  /** Does the change, which resolves when it is acknowledged. */
  async change(value: Value, how: () => Promise<unknown>): Promise<void> {
    const change: Change<Value> = { value, beganMs: performance.now(), ackedMs: Infinity };
    this.#changes.push(change);
    await how();
    change.ackedMs = performance.now();
  }

  /**
   * The values by which a request from `beganMs` to `endedMs` may be decided: that of the last change which was
   * acknowledged when it began, and those of all changes at the same time as the request.
   */
  possible(beganMs: number, endedMs: number): readonly Value[] {
    const first = this.#changes.findLastIndex(({ ackedMs }) => ackedMs < beganMs);
    return this.#changes
      .slice(Math.max(first, 0))
      .filter((change) => change.beganMs < endedMs)
      .map(({ value }) => value);
  }

  /** The acknowledged changes to a value that held for at least that long, with the time when each was acknowledged. */
  lasting(value: Value, ms: number): number[] {
    return this.#changes
      .filter((change, at) => change.value === value && (this.#changes[at + 1]?.beganMs ?? 0) - change.ackedMs > ms)
      .map(({ ackedMs }) => ackedMs);
  }
}
