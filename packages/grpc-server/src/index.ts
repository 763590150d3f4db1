export {
  type BidiHandler,
  builtReply,
  type Call,
  type CallerConnection,
  type DuplexCall,
  frameHeadroomBytes,
  type GrpcRoutes,
  type HttpHandler,
  type HttpReply,
  type HttpRequest,
  type LargeReply,
  type MethodHandler,
  type PiecewiseReply,
  type Reply,
  replyOfBytes,
  type ServerStreamHandler,
  smallReplyBytes,
  type UnaryHandler,
} from './calls/call.ts';
export type { CallConnection } from './calls/connection.ts';
export {
  callIsOver,
  defaultStatusFormat,
  GrpcCode,
  GrpcStatus,
  okStatus,
  type StatusFormat,
  unreadableMessage,
} from './calls/grpc-status.ts';
export type { HttpStream, HttpStreams } from './calls/http-stream.ts';
export { piecesOf } from './calls/outgoing-reply.ts';
export { type ReplyHolder, tooLargeToSend, type UnbuiltReply } from './calls/reply-queue.ts';
export { deadlineExceeded, toStatus } from './calls/stream-call.ts';
export { WaitingSends } from './calls/waiting-send.ts';
export { FairQueue } from './limits/fair-queue.ts';
export { defaultTransportLimits, type TransportLimits } from './limits/transport-limits.ts';
export { TurnQueue } from './limits/turn-queue.ts';
export { createGrpcServer, type GrpcServer, type GrpcServerOptions } from './listener/grpc-server.ts';
export { commonNameOf, type ListenerTls } from './listener/tls-acceptor.ts';
