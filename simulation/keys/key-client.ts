import { errorCatalogue } from '@tenure/protocol';
import type { NodeClock, SeededRandom } from '@tenure/test-support';
import { CallError, type ClientConnection } from '../world/client-connection.ts';
import type { Coverage } from '../world/coverage.ts';
import type { KeyChecker } from './key-checker.ts';
import { KeyLoad } from './key-load.ts';
import { decodeReply } from './key-reply.ts';
import { encodeRequest, isReadOnly, type KeyRequest } from './key-request.ts';
import { refusalKind } from './refusal-kind.ts';

export interface KeyClientOptions {
  /** Differs from those of all other clients of the world. */
  readonly number: number;
  /** A new connection to some server. */
  readonly connect: () => ClientConnection;
  /** Of its own process. */
  readonly clock: NodeClock;
  readonly random: SeededRandom;
  readonly checker: KeyChecker;
  readonly coverage: Coverage;
  readonly compactChance: number;
  readonly largeBytes: number;
}

/** The mean time between two requests. */
const pauseMs = { min: 5, max: 120 };
const proofTimeoutMs = 1_000;
const timeoutsMs: readonly number[] = [50, 300, 1_000, 10_000];

/**
 * One client of keys, leases' keys and transactions. It makes one request at a time, and never sends a request again:
 * after an unknown outcome only the log tells whether it took effect (K5).
 */
export class KeyClient {
  readonly #options: KeyClientOptions;
  readonly #load: KeyLoad;
  #connection: ClientConnection | undefined;
  #isStopped = false;
  #isProved = false;
  #wasOverloaded = false;

  constructor(options: KeyClientOptions) {
    this.#options = options;
    const { number: client, random, checker, compactChance, largeBytes } = options;
    this.#load = new KeyLoad({ client, random, oracle: checker.oracle, compactChance, largeBytes });
  }

  start(): void {
    this.#wait();
  }

  /** Makes requests until one is answered, as it must be once all faults are over. */
  prove(untilMs: number): void {
    const { clock } = this.#options;
    if (this.#isProved || clock.monotonicMs() > untilMs) return;
    void this.#ask(this.#load.next(), proofTimeoutMs).then((isAnswered) => {
      this.#isProved ||= isAnswered;
      clock.after(pauseMs.max, () => this.prove(untilMs));
    });
  }

  get isProved(): boolean {
    return this.#isProved;
  }

  /** It sends nothing more. */
  settle(): void {
    this.#isStopped = true;
  }

  #wait(): void {
    const { clock, random } = this.#options;
    clock.after(random.between(pauseMs.min, pauseMs.max), () => {
      if (!this.#isStopped) void this.#ask(this.#load.next()).then(() => this.#wait());
    });
  }

  /** Whether the server answered, with a reply or with what is wrong with the request. */
  async #ask(request: KeyRequest, timeoutMs = this.#options.random.pick(timeoutsMs)): Promise<boolean> {
    const { number, checker, coverage } = this.#options;
    const connection = this.#connected();
    const sent = checker.sent(number, request, connection);
    const { path, bytes } = encodeRequest(request);
    try {
      const reply = await connection.call(path, bytes, timeoutMs);
      checker.answered(sent, decodeReply(request, reply));
      this.#count(request);
      if (this.#wasOverloaded) coverage.count('keys: answered after too many requests');
      this.#wasOverloaded = false;
      return true;
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      checker.failed(sent, error);
      const kind = refusalKind(error);
      if (error.message === errorCatalogue.TooManyRequests.text) this.#wasOverloaded = true;
      coverage.count(`keys: ${kind === 'unknown' ? 'an unknown outcome' : `refused, ${error.message}`}`);
      const isPassing = kind === 'unknown' || error.code === 14;
      if (isPassing) this.#disconnect();
      return !isPassing && !this.#wasOverloaded;
    }
  }

  /** A client stays with its server, mostly. */
  #connected(): ClientConnection {
    const { connect, random } = this.#options;
    if (random.chance(0.05)) this.#disconnect();
    this.#connection ??= connect();
    return this.#connection;
  }

  #disconnect(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }

  #count(request: KeyRequest): void {
    const { coverage } = this.#options;
    coverage.count(isReadOnly(request) ? 'keys: txn of reads' : `keys: ${request.kind}`);
    if (request.kind === 'range' && request.range.serializable) coverage.count('keys: serializable range');
    if (request.kind === 'range' && request.range.revision > 0) coverage.count('keys: range of an old revision');
  }
}
