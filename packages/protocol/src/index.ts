// The generated messages and services, under the names their packages have on the wire: their shapes share names with
// the straight-line codecs' shapes, which carry bytes as latin1 strings.
export * as authpb from './gen/auth.gen.ts';
export * as etcdserverpb from './gen/rpc.gen.ts';
export * as healthpb from './gen/health.gen.ts';
export * as mvccpb from './gen/kv.gen.ts';
export * as tenureLog from './gen/tenure_log.gen.ts';
export * as peerpb from './gen/tenure_peer.gen.ts';
export * as v3electionpb from './gen/election.gen.ts';
export * as v3lockpb from './gen/lock.gen.ts';

export { type ErrorEntry, type ErrorName, errorCatalogue } from './errors/error-catalogue.ts';
export { exactText } from './errors/exact-text.ts';
export { type ExtensionField, extensionFields, firstExtensionNumber, reasonTrailer } from './extensions.ts';
export { type MethodKind, type RpcMethod, rpcMethods } from './methods.ts';

export { checkMessage, withNames } from './straight/check-message.ts';
export { DecodeError, type DecodeErrorCode } from './straight/decode-error.ts';
export {
  decodeDeleteRangeRequest,
  deleteRangeReplyList,
  deleteRangeRequestSize,
  encodeDeleteRangeRequest,
  writeDeleteRangeRequest,
} from './straight/delete-range.ts';
export { decodeMessage, encodeFramed, frameHeadroomBytes } from './straight/frame.ts';
export { decodeHealthCheckRequest } from './straight/health-check.ts';
export { bytesFromLatin1, latin1FromBytes } from './straight/latin1.ts';
export {
  type LeaseGrantRequest,
  type LeaseGrantResult,
  type LeaseKeepAliveReply,
  type LeaseKeepAliveResult,
  decodeLeaseGrantRequest,
  decodeLeaseKeepAliveRequest,
  decodeLeaseKeepAliveResponse,
  decodeLeaseRevokeRequest,
  decodeLeaseTimeToLiveRequest,
  encodeLeaseGrantRequest,
  encodeLeaseGrantResponse,
  encodeLeaseKeepAliveRequest,
  encodeLeaseKeepAliveResponse,
  leaseListReply,
  type ListedLease,
  type TimeToLive,
  timeToLiveReplyList,
} from './straight/lease.ts';
export {
  decodePutRequest,
  decodePutResponse,
  encodePutRequest,
  encodePutResponse,
  encodePutResponseWithin,
  putRequestSize,
  writePutRequest,
} from './straight/put.ts';
export { decodeRangeRequest, encodeRangeRequest, encodeRangeResponse, rangeReplyList } from './straight/range.ts';
export { type ResponseHeader, type ResponseHeaderPrefix, responseHeaderPrefix } from './straight/response-header.ts';
export { encodeList, type ListMessage, SlicedReply } from './straight/sliced-reply.ts';
export type {
  Compare,
  DeleteRangeRequest,
  DeleteRangeResult,
  KeyValue,
  KvEvent,
  PutRequest,
  PutResult,
  RangeRequest,
  RangeResult,
  RequestOp,
  ResponseOp,
  TxnRequest,
  TxnResult,
} from './straight/shapes.ts';
export {
  type MeasuredTxnRequest,
  decodeTxnRequest,
  encodeTxnRequest,
  measureTxnRequest,
} from './straight/txn-request.ts';
export { maxTxnDepth } from './straight/txn-depth.ts';
export { encodeTxnResponseWithin } from './straight/txn-response.ts';
export { type WatchResponseFields, encodeWatchResponse, watchEventSize } from './straight/watch-response.ts';
