import { DecodeError } from './decode-error.ts';
import { WireReader } from './wire-reader.ts';

const serviceTag = 0x0a;

/**
 * The service named by a HealthCheckRequest. etcd reads it with another decoder than its own messages: a field of a
 * wrong wire type counts as unknown, strings must be UTF-8, and everything else is refused with the same texts. Throws
 * DecodeError.
 */
export function decodeHealthCheckRequest(bytes: Buffer): string {
  const reader = new WireReader(bytes);
  let service = '';
  try {
    while (reader.at < reader.end) {
      const tag = reader.tag();
      if (tag === serviceTag) service = reader.utf8();
      else reader.skip(tag);
    }
  } catch (cause) {
    if (cause instanceof DecodeError && cause.code === 'InvalidText') throw cause;
    throw new DecodeError('Malformed', { cause });
  }
  return service;
}
