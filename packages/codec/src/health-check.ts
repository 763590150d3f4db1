import { DecodeError } from './decode-error.ts';
import { WireReader } from './wire-reader.ts';

const serviceTag = 0x0a;

/**
 * The service that a HealthCheckRequest names. In etcd another decoder than that of its own messages reads it: a field
 * of a foreign wire type counts as unknown, texts must be UTF-8, and all else is refused in the same words. Throws
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
