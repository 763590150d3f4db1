import type { CallerConnection } from '@tenure/grpc-server';

/** A connection of its own, for calls that come through no socket. */
export function testConnection(): CallerConnection {
  return { remoteAddress: '127.0.0.1', commonName: undefined };
}
