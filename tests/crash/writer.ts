import { etcdserverpb } from '@tenure/protocol';
import { serviceCalls, type ServiceCalls } from '../../conformance/client/service-calls.ts';
import type { GrpcClient } from '../../conformance/client/grpc-client.ts';
import type { SeededRandom } from '@tenure/test-support';

/**
 * The values that a key may have after a crash: the last acknowledged one, or that of a request sent since. Undefined
 * stands for no key.
 */
interface Known {
  acknowledged: string | undefined;
  unknown: (string | undefined)[];
}

export interface AcknowledgedWrite {
  readonly key: string;
  /** Undefined for a delete. */
  readonly value: string | undefined;
  readonly revision: number;
}

const keysPerWriter = 8;

/** A client with its own keys, which writes one request at a time and records the answers. */
export class Writer {
  readonly acknowledged: AcknowledgedWrite[] = [];
  readonly #name: string;
  readonly #random: SeededRandom;
  readonly #pauseMs: number;
  readonly #keys = new Map<string, Known>();
  #count = 0;
  #stopped = false;

  /** It pauses for `pauseMs` between an answer and the next request. */
  constructor(name: string, random: SeededRandom, pauseMs = 0) {
    this.#name = name;
    this.#random = random;
    this.#pauseMs = pauseMs;
    for (let at = 0; at < keysPerWriter; at += 1) {
      this.#keys.set(`${name}/${at}`, { acknowledged: undefined, unknown: [] });
    }
  }

  /** Writes until the server is gone or `stop` is called. */
  async run(client: GrpcClient): Promise<void> {
    const kv = serviceCalls(client, etcdserverpb.KV);
    this.#stopped = false;
    while (!this.#stopped) {
      try {
        const kind = this.#random.integer(0, 9);
        if (kind === 0) await this.#delete(kv);
        else if (kind <= 3) await this.#transaction(kv);
        else await this.#put(kv);
        if (this.#pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, this.#pauseMs));
      } catch {
        // The server was killed during the request: its outcome is in `unknown` now.
        return;
      }
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  /**
   * Compares the server's content with the acknowledged writes; throws the difference. The content is known from here
   * on.
   */
  check(held: ReadonlyMap<string, string>): void {
    for (const [key, known] of this.#keys) {
      const value = held.get(key);
      if (value !== known.acknowledged && !known.unknown.includes(value)) {
        throw new Error(
          `${key} holds ${value}; acknowledged was ${known.acknowledged}, possible were ${known.unknown.join(', ')}`,
        );
      }
      known.acknowledged = value;
      known.unknown = [];
    }
  }

  async #put(kv: ServiceCalls<typeof etcdserverpb.KV.method>): Promise<void> {
    const [key] = this.#pick(1);
    const value = this.#nextValue();
    await this.#expecting([[key as string, value]], async () => {
      const { header } = await kv.put({ key: Buffer.from(key as string), value: Buffer.from(value) });
      return Number(header?.revision);
    });
  }

  async #delete(kv: ServiceCalls<typeof etcdserverpb.KV.method>): Promise<void> {
    const [key] = this.#pick(1);
    await this.#expecting([[key as string, undefined]], async () => {
      const { header, deleted } = await kv.deleteRange({ key: Buffer.from(key as string) });
      return deleted === 0n ? undefined : Number(header?.revision);
    });
  }

  /** Two keys at once: after a crash both exist or neither. */
  async #transaction(kv: ServiceCalls<typeof etcdserverpb.KV.method>): Promise<void> {
    const value = this.#nextValue();
    const writes = this.#pick(2).map((key): [string, string] => [key, value]);
    await this.#expecting(writes, async () => {
      const { header } = await kv.txn({
        success: writes.map(([key]) => ({
          request: { case: 'requestPut', value: { key: Buffer.from(key), value: Buffer.from(value) } },
        })),
      });
      return Number(header?.revision);
    });
  }

  async #expecting(writes: [string, string | undefined][], send: () => Promise<number | undefined>): Promise<void> {
    for (const [key, value] of writes) this.#keys.get(key)?.unknown.push(value);
    const revision = await send();
    for (const [key, value] of writes) {
      this.#keys.set(key, { acknowledged: value, unknown: [] });
      if (revision !== undefined) this.acknowledged.push({ key, value, revision });
    }
  }

  #pick(count: number): string[] {
    const keys = [...this.#keys.keys()];
    const first = this.#random.integer(0, keys.length - 1);
    return Array.from({ length: count }, (_, at) => keys[(first + at) % keys.length] as string);
  }

  #nextValue(): string {
    this.#count += 1;
    return `${this.#name}-${this.#count}`;
  }
}
