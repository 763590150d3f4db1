import { frameHeadroomBytes } from '@tenure/codec';
import { GrpcCode, type GrpcStatus } from '../../transport/grpc-status.ts';
import type { DuplexCall } from '../../transport/transport.ts';
import type { Clock } from '../../time/clock.ts';
import type { LeaderStream, LeaderStreamListener, LinkEnd, OpenLeaderStream } from '../leader-stream.ts';
import { peerLinkPath } from '../peer-service.ts';

/** How long each message is on its way. */
const delayMs = 1;

interface Host {
  readonly handle: (call: DuplexCall) => void;
  readonly links: Set<VirtualLink>;
}

/** Streams between servers without sockets: each message arrives a while after it was sent, in order. */
export class VirtualNetwork {
  readonly #clock: Clock;
  readonly #hosts = new Map<string, Host>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  listen(address: string, handle: (call: DuplexCall) => void): void {
    this.#hosts.set(address, { handle, links: new Set() });
  }

  /** The server there is gone, with all its streams, in both directions. */
  cut(address: string): void {
    const links = this.#hosts.get(address)?.links ?? [];
    this.#hosts.delete(address);
    for (const link of links) link.over({ code: GrpcCode.unavailable, details: 'the connection broke' });
  }

  /** How the server at `from` opens its streams. */
  opener(from: string): OpenLeaderStream {
    return (address, listener) => {
      const link = new VirtualLink(this.#clock, listener);
      this.#clock.after(delayMs, () => {
        const [host, own] = [this.#hosts.get(address), this.#hosts.get(from)];
        if (host === undefined || own === undefined) {
          link.over({ code: GrpcCode.unavailable, details: 'the connection was refused' });
          return;
        }
        host.links.add(link);
        own.links.add(link);
        host.handle(link.call);
        listener.onOpen();
      });
      return link;
    };
  }
}

/** One stream: the follower's end, and the call that the leader serves. It takes any number of bytes. */
class VirtualLink implements LeaderStream {
  readonly call: VirtualCall;
  readonly #clock: Clock;
  readonly #listener: LeaderStreamListener;
  #isOver = false;

  constructor(clock: Clock, listener: LeaderStreamListener) {
    this.#clock = clock;
    this.#listener = listener;
    this.call = new VirtualCall({
      send: (message) => this.#later(() => listener.onMessage(message)),
      end: ({ code, message }) => this.#clock.after(delayMs, () => this.over({ code, details: message })),
    });
  }

  write(message: Uint8Array): boolean {
    const bytes = Buffer.from(message);
    this.#later(() => this.call.onMessage(bytes));
    return true;
  }

  cancel(code: number = GrpcCode.cancelled, details = 'the call was cancelled'): void {
    this.#clock.after(delayMs, () => this.over({ code, details }));
  }

  over(end: LinkEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.call.close();
    this.#listener.onEnd(end);
  }

  #later(receive: () => void): void {
    this.#clock.after(delayMs, () => {
      if (!this.#isOver) receive();
    });
  }
}

class VirtualCall implements DuplexCall {
  readonly path = peerLinkPath;
  readonly metadata = {};
  readonly deadlineMs = Infinity;
  readonly connection = {};
  readonly maxReceiveBytes = 2 * 1024 * 1024;
  readonly bufferedBytes = 0;
  onMessage: (message: Buffer) => void = () => {};
  onHalfClose: () => void = () => {};
  onDrain: () => void = () => {};
  onClose: () => void = () => {};
  readonly #ending = new AbortController();
  readonly #to: { readonly send: (message: Buffer) => void; readonly end: (status: GrpcStatus) => void };

  constructor(to: { readonly send: (message: Buffer) => void; readonly end: (status: GrpcStatus) => void }) {
    this.#to = to;
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  send(framed: Buffer): boolean {
    if (!this.signal.aborted) this.#to.send(Buffer.from(framed.subarray(frameHeadroomBytes)));
    return true;
  }

  end(status: GrpcStatus): void {
    if (this.signal.aborted) return;
    this.#to.end(status);
    this.close();
  }

  close(): void {
    if (this.signal.aborted) return;
    this.#ending.abort();
    this.onClose();
  }

  pause(): void {}

  resume(): void {}

  trustPeer(): void {}
}
