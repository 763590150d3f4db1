import type { NodeClock, Schedule } from '@tenure/test-support';

/** The parts of the network that one direction of a connection asks. */
export interface PipeNetwork {
  readonly schedule: Schedule;
  /** The delay of one message. */
  delayMs(): number;
  isCut(from: string, to: string): boolean;
  /** Calls back once when the cut of that direction heals. */
  onHeal(from: string, to: string, resume: () => void): void;
}

/**
 * One direction of a connection. Messages arrive in order, each after a delay. While the direction is cut, TCP
 * retransmits: messages wait, and arrive in order once it heals.
 */
export class Pipe {
  readonly #network: PipeNetwork;
  readonly #from: string;
  readonly #to: string;
  readonly #receiver: NodeClock;
  #lastAtMs = 0;
  #held: (() => void)[] = [];

  constructor(network: PipeNetwork, from: string, to: string, receiver: NodeClock) {
    this.#network = network;
    this.#from = from;
    this.#to = to;
    this.#receiver = receiver;
  }

  /** `onSocket` is called when the message has reached the receiver's socket, even while its process is paused. */
  send(receive: () => void, onSocket?: () => void): void {
    const { schedule } = this.#network;
    this.#lastAtMs = Math.max(this.#lastAtMs, schedule.nowMs + this.#network.delayMs());
    const arrive = (): void => {
      onSocket?.();
      this.#receiver.arrive(receive);
    };
    schedule.at(this.#lastAtMs, () => this.#pass(arrive));
  }

  #pass(arrive: () => void): void {
    if (this.#held.length === 0 && !this.#network.isCut(this.#from, this.#to)) {
      arrive();
      return;
    }
    this.#held.push(arrive);
    if (this.#held.length > 1) return;
    this.#network.onHeal(this.#from, this.#to, () => {
      for (const next of this.#held.splice(0)) next();
    });
  }
}
