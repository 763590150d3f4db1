import { compareAndSwapReply, compareAndSwapRequest, methods, putRequest } from '../wire/etcd-messages.ts';
import { runFrameLoad } from '../wire/frame-load.ts';
import { frame } from '../wire/grpc-frames.ts';

/** Fewer at once than the keys, so that most requests find their key as its last reply showed it. */
const sizes = { connections: 8, streamsPerConnection: 25 };
const value = 'v'.repeat(64);

/** Compares and swaps over keys in random order: each request names the revision that the last reply has shown. */
export class SwapLoad {
  readonly #address: string;
  readonly #keys: readonly string[];
  readonly #puts: readonly Buffer[];
  readonly #modRevisions: number[];
  #swaps = 0;
  #last = 0;

  constructor(address: string, keys: number) {
    this.#address = address;
    this.#keys = Array.from({ length: keys }, (_, key) => `k${String(key).padStart(15, '0')}`);
    this.#puts = this.#keys.map((key) => putRequest(key, value));
    this.#modRevisions = this.#keys.map(() => 0);
  }

  /** Swaps that succeeded so far. */
  get swaps(): number {
    return this.#swaps;
  }

  /** Requests per second, with those that found another revision. */
  async run(requests: number): Promise<number> {
    const keyOfRequest: number[] = [];
    const { perSecond } = await runFrameLoad({
      ...sizes,
      address: this.#address,
      path: methods.txn,
      requests,
      framedRequest: (index) => {
        const key = this.#nextKey();
        keyOfRequest[index] = key;
        return frame(
          compareAndSwapRequest(
            this.#keys[key] ?? '',
            this.#puts[key] ?? Buffer.alloc(0),
            this.#modRevisions[key] ?? 0,
          ),
        );
      },
      onReply: (index, message) => this.#onReply(keyOfRequest[index] ?? 0, message),
    });
    return perSecond;
  }

  #nextKey(): number {
    // A linear congruential generator with a full period (Hull and Dobell), whose upper digits are the key.
    this.#last = (this.#last * 21 + 7919) % (this.#keys.length * 1000);
    return Math.floor(this.#last / 1000);
  }

  #onReply(key: number, message: Buffer): void {
    const { swapped, modRevision } = compareAndSwapReply(message);
    if (swapped) this.#swaps += 1;
    // Replies of one key may overtake each other on different connections.
    this.#modRevisions[key] = Math.max(this.#modRevisions[key] ?? 0, modRevision);
  }
}
