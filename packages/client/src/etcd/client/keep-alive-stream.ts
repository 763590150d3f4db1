import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import type { EtcdConnection, EtcdStream } from '../connection/etcd-connection.ts';
import { etcdErrorOf } from '../connection/etcd-error-of.ts';
import { EtcdError } from '../connection/etcd-error.ts';
import type { Timer } from '../../time/clock.ts';
import { onAbort } from '../../time/on-abort.ts';
import type { Signal } from '../../time/signal.ts';

interface Waiting {
  readonly resolve: (ttlMs: number) => void;
  readonly reject: (error: unknown) => void;
}

const { leaseKeepAlive } = etcdserverpb.Lease.method;
const path = '/etcdserverpb.Lease/LeaseKeepAlive';
/** A stream without renewals for this time is closed, so that the server need not keep it open. */
const idleMs = 30_000;
const never = new AbortController().signal;

/**
 * One stream for the renewals of all leases. A renewal is one message and its answer. When the stream breaks, all
 * pending renewals fail, and the next renewal opens another stream, on another server.
 */
export class KeepAliveStream {
  readonly #connection: EtcdConnection;
  /** The pending renewals by lease, in the order of sending, which is the order of the answers for one lease. */
  readonly #waiting = new Map<bigint, Waiting[]>();
  #opening: Promise<EtcdStream> | undefined;
  #idle: Timer | undefined;

  constructor(connection: EtcdConnection) {
    this.#connection = connection;
  }

  /** Resolves with the remaining time of the lease in milliseconds; 0 if it is gone. Rejects with EtcdError. */
  async renew(id: bigint, signal: Signal = never): Promise<number> {
    signal.throwIfAborted();
    return await this.#connection.processRef.during(async () => {
      try {
        return await this.#renew(id, signal);
      } catch (error) {
        if (!(error instanceof EtcdError) || !this.#connection.isStale(error)) throw error;
        // The stream has the token of its beginning; the next one has a new token.
        return this.#renew(id, signal);
      }
    });
  }

  async #renew(id: bigint, signal: Signal): Promise<number> {
    const opening = (this.#opening ??= this.#open());
    const { call } = await opening;
    signal.throwIfAborted();
    // The stream may have broken while this renewal waited for it.
    if (this.#opening !== opening) throw new EtcdError('unreachable', 'no connection', 'the stream has ended');
    this.#stayOpen();
    return new Promise<number>((resolve, reject) => {
      const settled = onAbort(signal, () => {
        reject(signal.reason);
        // A missing answer may mean a half-open connection, so the stream is not used any more.
        this.#fail(opening, new EtcdError('ambiguous', 'etcd', 'a renewal was not answered in time'));
      });
      const waiting: Waiting = {
        resolve: (ttlMs) => {
          settled();
          resolve(ttlMs);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      };
      const line = this.#waiting.get(id);
      if (line === undefined) this.#waiting.set(id, [waiting]);
      else line.push(waiting);
      call.write(Buffer.from(toBinary(leaseKeepAlive.input, create(leaseKeepAlive.input, { ID: id }))));
    });
  }

  close(): void {
    const opening = this.#opening;
    if (opening !== undefined) this.#fail(opening, new EtcdError('closed', 'etcd', 'the client has been closed'));
  }

  #open(): Promise<EtcdStream> {
    // Between two renewals the stream does not keep the process alive.
    const opening = this.#connection.stream(path, { unref: true });
    opening.then(
      ({ call, endpoint }) => {
        // Late answers of an abandoned stream belong to no pending renewal.
        call.on('data', (bytes: Buffer) => this.#opening === opening && this.#answered(bytes));
        call.on('error', (error) => this.#fail(opening, etcdErrorOf(endpoint, error)));
        call.on('end', () => this.#fail(opening, new EtcdError('ambiguous', endpoint, 'the server ended the stream')));
      },
      (error: unknown) => this.#fail(opening, error),
    );
    return opening;
  }

  #answered(bytes: Buffer): void {
    const answer = fromBinary(leaseKeepAlive.output, bytes, { readUnknownFields: false });
    const line = this.#waiting.get(answer.ID);
    const first = line?.shift();
    if (line?.length === 0) this.#waiting.delete(answer.ID);
    first?.resolve(ttlMsOf(answer));
  }

  #fail(opening: Promise<EtcdStream>, error: unknown): void {
    if (this.#opening !== opening) return;
    this.#opening = undefined;
    this.#idle?.cancel();
    opening.then(
      ({ call, abandon }) => {
        abandon();
        call.cancel();
      },
      () => undefined,
    );
    const waiting = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    for (const one of waiting) one.reject(error);
  }

  #stayOpen(): void {
    this.#idle?.cancel();
    this.#idle = this.#connection.clock.setTimer(idleMs, () => {
      if (this.#waiting.size > 0) return this.#stayOpen();
      const opening = this.#opening;
      this.#opening = undefined;
      void opening?.then(({ call }) => call.end());
    });
  }
}

/** In milliseconds where the server sends them, otherwise from etcd's seconds. */
export function ttlMsOf(answer: { readonly TTL: bigint; readonly TTLMs: bigint }): number {
  return answer.TTLMs === 0n ? Number(answer.TTL) * 1000 : Number(answer.TTLMs);
}
