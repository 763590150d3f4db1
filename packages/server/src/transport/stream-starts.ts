import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Connection, StreamTurn } from './connection.ts';
import { FairQueue } from './fair-queue.ts';
import type { TransportLimits } from './transport-limits.ts';

interface NewStream {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
}

/** Creates a call for a new stream. */
export type StartCall = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, connection: Connection) => void;

/** Waiting streams begin for this long in one turn; the last one is finished. */
const startSliceMs = 5;

/**
 * New streams become calls here: a limited number in each turn of the event loop per connection, and in total. The rest
 * wait, round-robin between connections. A stream that its client has reset meanwhile was only an entry here: no watch
 * was created for it and no put proposed. A connection that opens more than its share in one turn, reset or not, is
 * paused until its streams have begun, and of several such connections one is resumed in each turn.
 */
export class StreamStarts {
  readonly #limits: TransportLimits;
  readonly #start: StartCall;
  readonly #waiting = new FairQueue<Connection, NewStream>();
  /** Paused connections, in the order in which they were paused. */
  readonly #stopped = new Set<Connection>();
  #turnNumber = 0;
  #totalStarted = 0;
  #turnIsDue = false;

  constructor(limits: TransportLimits, start: StartCall) {
    this.#limits = limits;
    this.#start = start;
  }

  arrived(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, connection: Connection): void {
    // The close event also reports a broken stream; without a listener its error would end the process.
    stream.on('error', ignore);
    const turn = this.#turnOf(connection);
    turn.arrived += 1;
    // The client, or the end of its connection, may have reset the stream between the headers and this event.
    if (isReset(stream)) connection.countReset();
    else if (this.#mayStart(connection, turn)) this.#begin({ stream, headers }, connection, turn);
    else this.#wait({ stream, headers }, connection);
    if (turn.arrived > this.#limits.maxStreamStartsPerTurn) this.#stopReading(connection);
    this.#turnSoon();
  }

  /** The connection has ended. */
  forget(connection: Connection): void {
    this.#stopped.delete(connection);
  }

  #turnOf({ streamTurn }: Connection): StreamTurn {
    if (streamTurn.turn !== this.#turnNumber) {
      streamTurn.turn = this.#turnNumber;
      streamTurn.arrived = 0;
      streamTurn.started = 0;
    }
    return streamTurn;
  }

  #mayStart(connection: Connection, { started }: StreamTurn): boolean {
    const { maxStreamStartsPerTurn, maxTotalStreamStartsPerTurn } = this.#limits;
    const hasShare = started < maxStreamStartsPerTurn && this.#totalStarted < maxTotalStreamStartsPerTurn;
    return hasShare && (this.#waiting.size === 0 || this.#waiting.waitingFor(connection) === 0);
  }

  #begin({ stream, headers }: NewStream, connection: Connection, turn: StreamTurn): void {
    turn.started += 1;
    this.#totalStarted += 1;
    this.#start(stream, headers, connection);
  }

  /** It counts as open from here, and is counted again when its call begins. */
  #wait(added: NewStream, connection: Connection): void {
    connection.openCalls.take(1);
    this.#waiting.push(connection, added);
  }

  #turnSoon(): void {
    if (this.#turnIsDue) return;
    this.#turnIsDue = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#turnIsDue = false;
    this.#totalStarted = 0;
    this.#turnNumber += 1;
    const untilMs = performance.now() + startSliceMs;
    while (this.#waiting.size > 0 && this.#totalStarted < this.#limits.maxTotalStreamStartsPerTurn) {
      const connection = this.#waiting.next(this.#hasShare);
      const next = connection && this.#waiting.take(connection);
      if (connection === undefined || next === undefined) break;
      connection.openCalls.giveBack(1);
      if (isReset(next.stream)) connection.countReset();
      else this.#begin(next, connection, this.#turnOf(connection));
      if (performance.now() > untilMs) break;
    }
    this.#readOne();
    if (this.#waiting.size > 0 || this.#stopped.size > 0 || this.#totalStarted > 0) this.#turnSoon();
  }

  readonly #hasShare = (connection: Connection): boolean => {
    return this.#turnOf(connection).started < this.#limits.maxStreamStartsPerTurn;
  };

  #stopReading(connection: Connection): void {
    if (this.#stopped.has(connection)) return;
    this.#stopped.add(connection);
    setReading(connection.session, false);
  }

  #readOne(): void {
    for (const connection of this.#stopped) {
      if (this.#waiting.waitingFor(connection) > 0) continue;
      this.#stopped.delete(connection);
      setReading(connection.session, true);
      return;
    }
  }
}

function isReset(stream: ServerHttp2Stream): boolean {
  return stream.destroyed || stream.closed;
}

function ignore(): void {}

/** What libuv's streams have; node documents neither the property nor its methods. */
interface SocketHandle {
  readStop?(): unknown;
  readStart?(): unknown;
}

/**
 * Stops reading the socket of a connection, or goes on. node:http2 reads up to two mebibytes of a socket before the
 * event loop turns, makes an object of every stream in them, and has no way to be told to stop: that costs others far
 * more than the calls do. Where a version of Node has no such methods, nothing happens.
 */
function setReading(session: ServerHttp2Session, isReading: boolean): void {
  if (session.destroyed) return;
  const handle = (session.socket as unknown as { readonly _handle?: SocketHandle | null })._handle;
  if (isReading) handle?.readStart?.();
  else handle?.readStop?.();
}
