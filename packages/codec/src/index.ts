export { checkMessage, withNames } from './check-message.ts';
export { DecodeError, type DecodeErrorCode } from './decode-error.ts';
export { decodeDeleteRangeRequest, deleteRangeReplyList, encodeDeleteRangeRequest } from './delete-range.ts';
export { decodeMessage, decodeRequest, encodeFramed, frameHeadroomBytes } from './frame.ts';
export { decodeHealthCheckRequest } from './health-check.ts';
export { bytesFromLatin1, latin1FromBytes } from './latin1.ts';
export {
  type LeaseGrantRequest,
  type LeaseGrantResult,
  type LeaseKeepAliveResult,
  decodeLeaseGrantRequest,
  decodeLeaseKeepAliveRequest,
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
} from './lease.ts';
export { decodeLoggedGrant, encodeLoggedGrant } from './logged-grant.ts';
export { decodePutRequest, encodePutRequest, encodePutResponse, encodePutResponseWithin } from './put.ts';
export { decodeRangeRequest, encodeRangeRequest, encodeRangeResponse, rangeReplyList } from './range.ts';
export { decodeRequestedCommand, encodeRequestedCommand } from './requested-command.ts';
export { type ResponseHeader, type ResponseHeaderPrefix, responseHeaderPrefix } from './response-header.ts';
export { encodeList, type ListMessage, SlicedReply } from './sliced-reply.ts';
export { decodeBoundedTxnRequest, decodeTxnRequest, encodeTxnRequest } from './txn-request.ts';
export { encodeTxnResponseWithin } from './txn-response.ts';
export { decodeWatchRequest, type WatchCreateRequest, type WatchRequest } from './watch-request.ts';
export { varintSize, writeVarint } from './wire-write.ts';
export { type WatchResponseFields, encodeWatchResponse, watchEventSize } from './watch-response.ts';
