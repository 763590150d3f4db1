import type { NodeClock, Schedule, SeededRandom } from '@tenure/test-support';
import type { ServerNetwork } from '../../packages/server/src/server-options.ts';
import { type CallerConnection, GrpcCode } from '@tenure/grpc-server';
import type { GrpcRoutes, MethodHandler } from '../../packages/server/src/transport/transport.ts';
import { peerLinkPath } from '../../packages/server/src/cluster/leader/peer-service.ts';
import { CallError, type ClientConnection, type ClientStreamListener } from './client-connection.ts';
import type { PipeNetwork } from './pipe.ts';
import { SimulatedStream, type StreamEnd, type StreamListener, type StreamOptions } from './simulated-stream.ts';
import { endText, replyText, requestText } from './trace-text.ts';
import type { Trace } from './trace.ts';

interface Host {
  readonly end: StreamEnd;
  readonly routes: GrpcRoutes;
  readonly streams: Set<SimulatedStream>;
  isClosing: boolean;
}

/** What a client calls, and the token that it shows. */
type Called = Pick<StreamOptions, 'path' | 'connection' | 'token'>;

/** How often a closing server looks whether its calls have ended. */
const closePollMs = 20;

export interface NetworkOptions {
  readonly schedule: Schedule;
  readonly random: SeededRandom;
  readonly trace: Trace;
  /** The share of messages that are late. */
  readonly lateShare: number;
  /** How much a server sends on a stream before its client reads. */
  readonly windowBytes: number;
  /** A handler has failed with an error that is not a status. */
  readonly onFailure: (address: string, path: string, error: unknown) => void;
  /** A message of a client has reached a server's socket. `isLost`: its connection has broken since. */
  readonly onSocket?: (serverName: string, path: string, message: Buffer, isLost: () => boolean) => void;
}

/** Connections between processes, with delays, cuts in one direction, and breaks that each end notices on its own. */
export class SimulatedNetwork implements PipeNetwork {
  readonly schedule: Schedule;
  /** No message is late any more. */
  isCalm = false;
  /** When both ends of each broken stream will have noticed it. */
  breaksNoticedMs = 0;
  readonly #options: NetworkOptions;
  readonly #random: SeededRandom;
  readonly #hosts = new Map<string, Host>();
  readonly #cuts = new Map<string, (() => void)[]>();

  constructor(options: NetworkOptions) {
    this.#options = options;
    this.schedule = options.schedule;
    this.#random = options.random;
  }

  delayMs(): number {
    const random = this.#random;
    const isLate = !this.isCalm && random.chance(this.#options.lateShare);
    return isLate ? random.between(3, 300) : random.between(0.2, 2.5);
  }

  isCut(from: string, to: string): boolean {
    return this.#cuts.has(`${from}>${to}`);
  }

  onHeal(from: string, to: string, resume: () => void): void {
    this.#cuts.get(`${from}>${to}`)?.push(resume);
  }

  /** Messages from one machine to another wait until it is healed. */
  cut(from: string, to: string): void {
    const name = `${from}>${to}`;
    if (!this.#cuts.has(name)) this.#cuts.set(name, []);
  }

  heal(from: string, to: string): void {
    const name = `${from}>${to}`;
    const waiting = this.#cuts.get(name) ?? [];
    this.#cuts.delete(name);
    for (const resume of waiting) resume();
  }

  healAll(): void {
    this.isCalm = true;
    for (const name of this.#cuts.keys()) this.heal(...(name.split('>') as [string, string]));
  }

  /** The network as the server with that name uses it. Its address is its name and the port. */
  at(name: string, clock: NodeClock): ServerNetwork {
    const end = { name, clock };
    return {
      createTransport: ({ routes }) => ({
        listen: async (host, port) => {
          this.#hosts.set(`${host}:${port}`, { end, routes, streams: new Set(), isClosing: false });
          return { address: host, family: 'simulated', port };
        },
        close: ({ graceMs }) => this.#closeHost(name, clock, graceMs),
      }),
      openLeaderStream: (url, listener) => {
        const stream = this.#open(
          end,
          url.replace('http://', ''),
          { path: peerLinkPath, connection: { remoteAddress: end.name, commonName: undefined } },
          {
            onOpen: () => listener.onOpen(),
            onMessage: (message) => listener.onMessage(message),
            onEnd: ({ code, message }) => listener.onEnd({ code, details: message }),
          },
        );
        return {
          write: (message) => {
            stream.write(message);
            return true;
          },
          cancel: (code, details) => stream.cancel(code, details),
        };
      },
    };
  }

  /** A client's connection to the server at that address. */
  connect(client: StreamEnd, address: string): ClientConnection {
    const { trace } = this.#options;
    return new SimulatedConnection(client, address, (called, listener) => {
      if (!trace.isPrinted) return this.#open(client, address, called, listener);
      return this.#open(client, address, called, traced({ trace, who: client.name, path: called.path }, listener));
    });
  }

  /** The process with that name is gone. The machine still answers: the other ends notice soon. */
  crash(name: string): void {
    this.#leave(name);
  }

  /** Whether a call of a client to the server with that name is in progress, other than its streams. */
  hasRequests(name: string): boolean {
    return [...this.#hosts.values()].some(
      ({ end, streams }) => end.name === name && [...streams].some(({ isRequest }) => isRequest),
    );
  }

  /** Breaks the streams between servers that end at this one, or one of those of clients. */
  breakStreams(name: string, which: 'servers' | 'clients'): void {
    for (const { streams } of this.#hosts.values()) {
      for (const stream of streams) {
        if (stream.clientName !== name && stream.serverName !== name) continue;
        if ((stream.path === peerLinkPath) !== (which === 'servers')) continue;
        if (which === 'clients' && this.#random.chance(0.5)) continue;
        streams.delete(stream);
        stream.breakOff(this.#noticeMs(), this.#noticeMs());
      }
    }
  }

  /** Refuses new calls, waits for those in progress, and breaks the rest. */
  async #closeHost(name: string, clock: NodeClock, graceMs: number): Promise<void> {
    for (const host of this.#hosts.values()) if (host.end.name === name) host.isClosing = true;
    const untilMs = clock.monotonicMs() + graceMs;
    const isServing = (): boolean =>
      [...this.#hosts.values()].some(({ end, streams }) => end.name === name && streams.size > 0);
    while (isServing() && clock.monotonicMs() < untilMs) {
      await new Promise<void>((resolve) => clock.after(closePollMs, resolve));
    }
    this.#leave(name);
  }

  #leave(name: string): void {
    for (const [address, { end, streams }] of this.#hosts) {
      for (const stream of streams) {
        if (end.name !== name && stream.clientName !== name) continue;
        streams.delete(stream);
        stream.breakOff(this.#random.between(0.2, 5), this.#random.between(0.2, 5));
      }
      if (end.name === name) this.#hosts.delete(address);
    }
  }

  /** The other end of a broken connection notices at once, or when it next hears nothing for long. */
  #noticeMs(): number {
    const delayMs = this.#random.chance(0.7) ? this.#random.between(0.2, 5) : this.#random.between(5, 3_000);
    this.breaksNoticedMs = Math.max(this.breaksNoticedMs, this.schedule.nowMs + delayMs);
    return delayMs;
  }

  #open(client: StreamEnd, address: string, called: Called, listener: StreamListener) {
    const { path } = called;
    const host = this.#hosts.get(address);
    const server = host?.end ?? { name: address, clock: client.clock };
    const stream: SimulatedStream = new SimulatedStream({
      network: this,
      windowBytes: this.#options.windowBytes,
      client,
      server,
      ...called,
      listener,
      onOver: (over) => host?.streams.delete(over),
      onFailure: (failed, error) => this.#options.onFailure(address, failed, error),
      onSocket: (one, message) => {
        if (path !== peerLinkPath) {
          this.#options.trace.note(client.name, () => `reaches ${one.serverName}: ${requestText(path, message)}`);
        }
        this.#options.onSocket?.(one.serverName, path, message, () => one.isBroken);
      },
    });
    host?.streams.add(stream);
    stream.open(() => this.#handlerOf(host, address, path));
    return stream;
  }

  /** Undefined when the process has been replaced or is gone. */
  #handlerOf(host: Host | undefined, address: string, path: string): MethodHandler | undefined {
    const isThere = host !== undefined && this.#hosts.get(address) === host && !host.isClosing;
    return isThere ? host.routes.get(path) : undefined;
  }
}

class SimulatedConnection implements ClientConnection {
  readonly address: string;
  readonly #client: StreamEnd;
  readonly #openStream: (called: Called, listener: StreamListener) => SimulatedStream;
  readonly #open = new Set<SimulatedStream>();
  readonly #asServed: CallerConnection;

  constructor(
    client: StreamEnd,
    address: string,
    openStream: (called: Called, listener: StreamListener) => SimulatedStream,
  ) {
    this.#client = client;
    this.#asServed = { remoteAddress: client.name, commonName: undefined };
    this.address = address;
    this.#openStream = openStream;
  }

  call(path: string, request: Uint8Array, timeoutMs?: number, token?: string): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      let reply: Buffer | undefined;
      let cancelTimer = (): void => {};
      const listener: ClientStreamListener = {
        onMessage: (message) => {
          reply = message as Buffer;
        },
        onEnd: ({ fromServer, ...end }) => {
          cancelTimer();
          if (end.code === GrpcCode.ok && reply !== undefined) resolve(reply);
          else reject(new CallError(end, fromServer));
        },
      };
      const stream = this.open(path, listener, token);
      stream.write(request);
      stream.halfClose();
      if (timeoutMs === undefined) return;
      cancelTimer = this.#client.clock.after(timeoutMs, () => stream.cancel(GrpcCode.deadlineExceeded, 'timed out'));
    });
  }

  open(path: string, { onMessage, onEnd }: ClientStreamListener, token?: string): SimulatedStream {
    const stream: SimulatedStream = this.#openStream(
      { path, connection: this.#asServed, token },
      {
        onMessage,
        onEnd: (end) => {
          this.#open.delete(stream);
          onEnd(end);
        },
      },
    );
    this.#open.add(stream);
    return stream;
  }

  close(): void {
    for (const stream of this.#open) stream.breakOff(0, 1);
  }
}

/** Notes the messages that a client gets, and how its call ends. */
function traced(
  { trace, who, path }: { readonly trace: Trace; readonly who: string; readonly path: string },
  listener: StreamListener,
): StreamListener {
  return {
    onOpen: () => listener.onOpen?.(),
    onMessage: (message) => {
      trace.note(who, () => `gets ${replyText(path, message)}`);
      listener.onMessage(message);
    },
    onEnd: (end) => {
      trace.note(who, () => endText(path, end));
      listener.onEnd(end);
    },
  };
}
