import type { IncomingHttpHeaders } from 'node:http';
import { GrpcCode, GrpcStatus } from './grpc-status.ts';

const binarySuffix = '-bin';
const digits = /[A-Za-z0-9+/]/;

/** The refusal of a call whose binary metadata is not base64, with the text of Go's gRPC server. */
export function binaryMetadataFault(headers: IncomingHttpHeaders): GrpcStatus | undefined {
  for (const name in headers) {
    if (!name.endsWith(binarySuffix)) continue;
    // Node joins repeated headers of one name with commas.
    for (const value of String(headers[name]).split(', ')) {
      const at = base64Fault(value);
      if (at === undefined) continue;
      const what = `${JSON.stringify(value)} in header ${JSON.stringify(name)}`;
      const text = `malformed binary metadata ${what}: illegal base64 data at input byte ${at}`;
      return new GrpcStatus(GrpcCode.internal, text);
    }
  }
  return undefined;
}

/**
 * The offset at which Go finds that a text is not base64: padded if its length is a multiple of four, unpadded
 * otherwise. Leftover bits are ignored.
 */
function base64Fault(text: string): number | undefined {
  const isPadded = text.length % 4 === 0;
  let at = 0;
  while (at < text.length && digits.test(text.charAt(at))) at += 1;
  const inGroup = at % 4;
  if (at === text.length) return inGroup === 1 ? at - inGroup : undefined;
  if (!isPadded || text.charAt(at) !== '=' || inGroup < 2) return at;
  const padding = 4 - inGroup;
  if (padding === 2 && text.charAt(at + 1) !== '=') return at;
  return at + padding < text.length ? at + padding : undefined;
}
