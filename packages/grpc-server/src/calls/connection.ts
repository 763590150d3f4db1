import type { Http2Session } from '../http2/http2-session.ts';
import type { Budget } from '../limits/budget.ts';
import type { HttpClientConnection, HttpQueue } from './http-queue.ts';
import type { ReplyQueue } from './reply-queue.ts';
import type { GrpcStatus, StatusFormat } from './grpc-status.ts';
import type { CallerConnection } from './call.ts';
import type { TransportLimits } from '../limits/transport-limits.ts';
import type { TransportLog } from './transport-log.ts';

/** A call, as seen by its connection. */
export interface OpenCall {
  /** Called by each sweep of the connection for the calls that are bounded in time. */
  sweep(): void;
  /** Ends the call with this status, unless it has ended. */
  refuse(status: GrpcStatus): void;
}

/** What one turn of the event loop has taken from one connection. */
export interface TurnShare {
  turn: number;
  started: number;
  bytes: number;
}

/** The state shared by the calls of one connection, of either version of HTTP. */
export interface CallConnection extends HttpClientConnection, CallerConnection {
  readonly limits: TransportLimits;
  readonly log: TransportLog;
  /** Calls without a time limit; ended when the server stops. */
  readonly lastingCalls: Set<OpenCall>;
  readonly openCalls: Budget;
  /** Bytes of requests that are not complete. */
  readonly requestBytes: Budget;
  /** Bytes of replies, from when they are built until the socket has taken them. */
  readonly replyBytes: Budget;
  /** Memory held by large replies that are not built yet. */
  readonly resultBytes: Budget;
  /** The queue of large replies; one for all connections. */
  readonly replies: ReplyQueue;
  /** The queue of requests that are not gRPC; one for all connections. */
  readonly http: HttpQueue;
  /** Unsent bytes of bidirectional streams. */
  readonly streamBytes: Budget;
  /** The number of sweeps so far: a clock that costs a call nothing to read. */
  sweeps: number;
  /** The common name of the client's verified certificate, if it has one, also where it does not log in. */
  readonly certificateName: string | undefined;
}

/** The state shared by the calls of one HTTP/2 connection. */
export interface Connection extends CallConnection {
  readonly session: Http2Session;
  readonly statusFormat: StatusFormat;
  /** Over TLS. */
  readonly isSecure: boolean;
  /** Its last turn of the event loop that had any; maintained by TurnShares. */
  readonly turnShare: TurnShare;
  /** The peer is a server of this cluster. */
  trustPeer(): void;
}
