import type { Socket } from 'node:net';

const http2Preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

export interface SniffedProtocols {
  /** The client sent HTTP/2's whole preface. */
  onHttp2(socket: Socket): void;
  /** The client sent anything else: HTTP/1, or garbage that an HTTP/1 parser answers with 400. */
  onHttp1(socket: Socket): void;
}

/**
 * Reads from a new connection until its protocol is known, puts the data back, and passes the socket on. A client whose
 * protocol is unknown after `timeoutMs` is disconnected, so that a silent client holds a socket for a bounded time.
 * Returns a function that disconnects it early.
 */
export function sniffProtocol(socket: Socket, timeoutMs: number, protocols: SniffedProtocols): () => void {
  let read: Buffer = Buffer.alloc(0);
  const giveUp = () => socket.destroy();
  // After the sockets have been read once more: when the event loop was blocked, the first bytes may wait in this one.
  const timer = setTimeout(() => setImmediate(() => isUndecided && giveUp()), timeoutMs);
  let isUndecided = true;

  const stop = () => {
    isUndecided = false;
    clearTimeout(timer);
    socket.removeListener('data', onData);
    socket.removeListener('close', stop);
  };
  const onData = (chunk: Buffer) => {
    read = read.length === 0 ? chunk : Buffer.concat([read, chunk]);
    const known = Math.min(read.length, http2Preface.length);
    const isHttp2 = http2Preface.compare(read, 0, known, 0, known) === 0;
    if (isHttp2 && known < http2Preface.length) return;
    stop();
    // The next owner reads the socket from the first byte.
    socket.pause();
    socket.unshift(read);
    if (isHttp2) protocols.onHttp2(socket);
    else protocols.onHttp1(socket);
  };
  socket.on('data', onData);
  socket.on('close', stop);
  return giveUp;
}
