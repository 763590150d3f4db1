import type { IncomingHttpHeaders } from 'node:http';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';

const metadataPrefix = 'grpc-metadata-';

const millisecondsPerUnit: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 1e-3,
  n: 1e-6,
};

/** Names that belong to gRPC itself, which its clients do not take from their callers. */
const reserved = /^(?:content-type|user-agent|te|grpc-.*|:.*)$/;

/**
 * What a call at the gateway has as metadata: the token of `authorization`, and each header that begins with
 * Grpc-Metadata-, without that.
 */
export function metadataOf(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const metadata: IncomingHttpHeaders = {};
  if (headers.authorization !== undefined) metadata.authorization = headers.authorization;
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith(metadataPrefix)) continue;
    const key = name.slice(metadataPrefix.length);
    if (key !== '' && !reserved.test(key)) metadata[key] ??= value;
  }
  return metadata;
}

/** The value of Grpc-Timeout in milliseconds; Infinity without one, and for 0, as in grpc-gateway. */
export function timeoutMsOf(headers: IncomingHttpHeaders): number {
  const value = headers['grpc-timeout'];
  if (typeof value !== 'string' || value === '') return Infinity;
  const unit = millisecondsPerUnit[value.slice(-1)];
  const count = value.slice(0, -1);
  if (unit === undefined || !/^[+-]?[0-9]{1,18}$/.test(count)) {
    throw new GrpcStatus(GrpcCode.invalidArgument, `invalid grpc-timeout: ${value}`);
  }
  const timeoutMs = Number(count) * unit;
  return timeoutMs === 0 ? Infinity : timeoutMs;
}
