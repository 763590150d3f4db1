import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { Connection, StreamTurn } from './connection.ts';
import { FairQueue } from './fair-queue.ts';
import { setReading } from './socket-reading.ts';
import type { TransportLimits } from './transport-limits.ts';

interface NewStream {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
}

/** What makes a call of a new stream. */
export type StartCall = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, connection: Connection) => void;

/** Waiting streams are begun for so long in one turn, and the last of them is finished. */
const startSliceMs = 5;

/**
 * New streams become calls here: so many in each turn of the event loop for one connection, and so many for all. The
 * rest wait, connections in turn. A stream that its client has reset meanwhile was no more than an entry here: no
 * watch is made for it and no put proposed. A connection that brings more than its share in one turn, reset or not, is
 * not read on before its streams have begun, and of those that wait for that one goes on in each turn.
 */
export class StreamStarts {
  readonly #limits: TransportLimits;
  readonly #start: StartCall;
  readonly #waiting = new FairQueue<Connection, NewStream>();
  /** Connections that are not read, those that were stopped first in front. */
  readonly #stopped = new Set<Connection>();
  #turnNumber = 0;
  #totalStarted = 0;
  #turnIsDue = false;

  constructor(limits: TransportLimits, start: StartCall) {
    this.#limits = limits;
    this.#start = start;
  }

  arrived(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, connection: Connection): void {
    // A stream that breaks is told by its close as well; without a listener its error would end the process.
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

  /** It counts as open from here, and is counted anew when its call begins. */
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
