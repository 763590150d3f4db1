import { gunzipSync } from 'node:zlib';
import { GrpcCode, GrpcStatus } from './grpc-status.ts';

/**
 * Decompresses one message, or refuses it. The output is limited during decompression, so that a few kilobytes that
 * inflate to gigabytes cost no more than the largest message that may be received. It runs synchronously, not in the
 * thread pool: the size is limited, and the order of a stream's messages is kept without a queue.
 */
export function decompressMessage(body: Buffer, encoding: string | undefined, maxBytes: number): Buffer {
  if (encoding === undefined || encoding === 'identity' || encoding === '') {
    throw new GrpcStatus(GrpcCode.internal, 'grpc: compressed flag set with identity or empty encoding');
  }
  try {
    // The library accepts no limit of zero; one byte more than allowed distinguishes "exactly at the limit" from
    // "beyond".
    const inflated = gunzipSync(body, { maxOutputLength: maxBytes + 1 });
    if (inflated.length > maxBytes) throw tooLarge(maxBytes);
    return inflated;
  } catch (error) {
    if (error instanceof GrpcStatus) throw error;
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(maxBytes);
    throw new GrpcStatus(
      GrpcCode.internal,
      `grpc: failed to decompress the received message: ${(error as Error).message}`,
    );
  }
}

function tooLarge(maxBytes: number): GrpcStatus {
  return new GrpcStatus(
    GrpcCode.resourceExhausted,
    `grpc: received message after decompression larger than max ${maxBytes}`,
  );
}
