import type { ServerHttp2Session } from 'node:http2';
import type { Budget } from './budget.ts';
import type { HttpClientConnection, HttpQueue } from './http-queue.ts';
import type { ReplyQueue } from './reply-queue.ts';
import type { GrpcStatus } from './grpc-status.ts';
import type { TransportLimits } from './transport-limits.ts';
import type { TransportLog } from './transport-log.ts';

/** A call of a connection, as the connection knows it. */
export interface OpenCall {
  /** Called by each sweep of the connection for the calls that are bounded in time. */
  sweep(): void;
  /** Ends the call with this status, unless it has ended. */
  refuse(status: GrpcStatus): void;
}

/** The new streams of one connection in one turn of the event loop. */
export interface StreamTurn {
  turn: number;
  arrived: number;
  started: number;
}

/** What the calls of one HTTP/2 connection share. */
export interface Connection extends HttpClientConnection {
  readonly session: ServerHttp2Session;
  readonly limits: TransportLimits;
  readonly log: TransportLog;
  /** Calls whose request or reply is bounded in time; looked at by every sweep. */
  readonly timedCalls: Set<OpenCall>;
  /** Calls that may last for as long as both sides like; ended when the server stops. */
  readonly lastingCalls: Set<OpenCall>;
  readonly openCalls: Budget;
  /** Bytes of requests that are not complete. */
  readonly requestBytes: Budget;
  /** Bytes of replies from when they are built to when the socket has taken them. */
  readonly replyBytes: Budget;
  /** What large replies hold in memory that wait to be built. */
  readonly resultBytes: Budget;
  /** Where large replies wait to be built; one for all connections. */
  readonly replies: ReplyQueue;
  /** Where requests that are not gRPC wait for their handler; one for all connections. */
  readonly http: HttpQueue;
  /** Bytes that bidirectional streams have not got rid of. */
  readonly streamBytes: Budget;
  /** Its new streams in the turn of the event loop in which some came last; kept by StreamStarts. */
  readonly streamTurn: StreamTurn;
  /** Sweeps so far: a clock that costs a call nothing to read. */
  sweeps: number;
  /** At the other end is a server of this cluster. */
  trustPeer(): void;
  /** A call's client, or the end of the connection, has reset its stream. */
  countReset(): void;
}
