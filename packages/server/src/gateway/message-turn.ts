/** Messages that all streams at the gateway together may bring in one turn of the event loop. */
const maxMessagesPerTurn = 256;

/** What is left of this turn of the event loop for messages at the gateway. */
export class MessageTurn {
  #taken = 0;
  #endIsDue = false;

  /** True when one more message may be handled in this turn. */
  take(): boolean {
    if (!this.#endIsDue) {
      this.#endIsDue = true;
      setImmediate(() => {
        this.#endIsDue = false;
        this.#taken = 0;
      });
    }
    this.#taken += 1;
    return this.#taken <= maxMessagesPerTurn;
  }
}
