export { HeaderBlock } from './http2/header-block.ts';
export { Http2Session } from './http2/http2-session.ts';
export { Http2Stream } from './http2/http2-stream.ts';
export type { ReceivedHead } from './http2/request-head-reader.ts';
export type { SessionOwner } from './http2/session-state.ts';
export type { SessionLimits } from './http2/session-limits.ts';
export { clientPreface, errorCode } from './http2/frame-type.ts';
