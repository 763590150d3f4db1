/** Too early PINGs after which a client is told to calm down. */
const maxPingStrikes = 2;
/** The interval that is allowed to a client without any call. */
const idleIntervalMs = 2 * 60 * 60 * 1000;

/**
 * Counts the PINGs of one client that come earlier than is allowed, as grpc-go's keepalive enforcement does
 * (internal/transport/http2_server.go), which etcd uses. A frame that this server sent with headers or data starts the
 * count again: a client that measures the bandwidth sends PINGs only with data.
 */
export class PingPolicy {
  readonly #minIntervalMs: number;
  #lastPingMs = -Infinity;
  #strikes = 0;
  #hasSent = false;

  constructor(minIntervalMs: number) {
    this.#minIntervalMs = minIntervalMs;
  }

  /** Headers or data have been sent. */
  sent(): void {
    this.#hasSent = true;
  }

  /** A PING has arrived. False when the client has sent too many of them too early. */
  received(nowMs: number, openStreams: number): boolean {
    const intervalMs = nowMs - this.#lastPingMs;
    this.#lastPingMs = nowMs;
    if (this.#hasSent) {
      this.#hasSent = false;
      this.#strikes = 0;
      return true;
    }
    if (intervalMs < (openStreams === 0 ? idleIntervalMs : this.#minIntervalMs)) this.#strikes += 1;
    return this.#strikes <= maxPingStrikes;
  }
}
