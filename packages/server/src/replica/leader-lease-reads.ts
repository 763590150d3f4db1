/**
 * Linearizable reads that a leader answers by its clock, once the append that was in flight at their arrival has
 * returned. Another server may have read that append in the log and acknowledged it before this leader has its answer.
 * The reads wait no longer than the leader lease lasts. When it expires, the leader is deposed and the reads wait for
 * the next leader.
 */
export class LeaderLeaseReads {
  readonly #readByLog: () => Promise<void>;
  readonly #waiting = new Set<() => void>();

  /** `readByLog` resolves when the state is no older than the call, under any leader. */
  constructor(readByLog: () => Promise<void>) {
    this.#readByLog = readByLog;
  }

  /** Resolves when `out`, the append in flight, has returned and was applied. */
  behind(out: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const viaLog = (): void => void this.#readByLog().then(resolve, reject);
      this.#waiting.add(viaLog);
      void out.then(() => {
        if (this.#waiting.delete(viaLog)) resolve();
      });
    });
  }

  /** This server no longer leads. No waiting read is answered by the clock, whatever the outcome of the append. */
  deposed(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const viaLog of waiting) viaLog();
  }
}
