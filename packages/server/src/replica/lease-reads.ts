/**
 * Linearizable reads that a leader answers by its clock, and that wait for the append which was out when they came:
 * another server may have read it in the log, and acknowledged it, before this leader has its answer. They wait for
 * no longer than the leader has its right: when that lapses, it is deposed, and they wait for the next leader instead.
 */
export class LeaseReads {
  readonly #readByLog: () => Promise<void>;
  readonly #waiting = new Set<() => void>();

  /** `readByLog` resolves when the state is no older than the call, whoever leads. */
  constructor(readByLog: () => Promise<void>) {
    this.#readByLog = readByLog;
  }

  /** Resolves when `out`, the append that is out now, has come back and was applied. */
  behind(out: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const elsewhere = (): void => void this.#readByLog().then(resolve, reject);
      this.#waiting.add(elsewhere);
      void out.then(() => {
        if (this.#waiting.delete(elsewhere)) resolve();
      });
    });
  }

  /** This server leads no more: whatever becomes of the append, nobody is answered by the clock. */
  deposed(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const elsewhere of waiting) elsewhere();
  }
}
