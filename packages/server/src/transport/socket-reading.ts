import type { ServerHttp2Session } from 'node:http2';

/** What libuv's streams have; node documents neither the property nor its methods. */
interface SocketHandle {
  readStop?(): unknown;
  readStart?(): unknown;
}

/**
 * Stops reading the socket of a connection, or goes on. node:http2 reads up to two mebibytes of a socket before the
 * event loop turns, makes an object of every stream in them, and has no way to be told to stop: that costs others far
 * more than the calls do. Where a version of Node has no such methods, nothing happens.
 */
export function setReading(session: ServerHttp2Session, isReading: boolean): void {
  if (session.destroyed) return;
  const handle = (session.socket as unknown as { readonly _handle?: SocketHandle | null })._handle;
  if (isReading) handle?.readStart?.();
  else handle?.readStop?.();
}
