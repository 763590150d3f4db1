import { once } from 'node:events';
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import { connect, createServer as createTcpServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { frameTypes, http2Preface } from '@tenure/test-support';
import { GrpcCallError } from '../grpc-call-error.ts';
import { GrpcChannel } from '../grpc-channel.ts';

export const maxMessageBytes = 1024 * 1024;
const frameHeadBytes = 9;
export const endings: (() => unknown)[] = [];

/** Closes everything that a test has opened, in reverse order. */
export async function endAll(): Promise<void> {
  for (const end of endings.splice(0).toReversed()) await end();
}

export function channelTo(address: string, options: { intervalMs?: number; timeoutMs?: number } = {}): GrpcChannel {
  const { intervalMs: keepAliveIntervalMs = 60_000, timeoutMs: keepAliveTimeoutMs = 60_000 } = options;
  const channel = new GrpcChannel({ address, maxMessageBytes, keepAliveIntervalMs, keepAliveTimeoutMs });
  endings.push(() => channel.close());
  return channel;
}

export async function listening(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  endings.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** An HTTP/2 server with a scripted response to each call. */
export async function http2Server(onStream: (stream: ServerHttp2Stream) => void): Promise<string> {
  const server = createHttp2Server();
  server.on('stream', (stream) => {
    stream.on('error', () => {});
    onStream(stream);
  });
  return listening(server as unknown as Server);
}

/** A proxy in front of `target` that silently drops everything on request. */
export async function silenceable(target: string): Promise<{ readonly proxied: string; readonly silence: () => void }> {
  const [host, port] = target.split(':') as [string, string];
  let isSilent = false;
  const proxy = createTcpServer((inward) => {
    const outward = connect(Number(port), host);
    inward.on('data', (bytes) => isSilent || outward.write(bytes));
    outward.on('data', (bytes) => isSilent || inward.write(bytes));
    for (const socket of [inward, outward]) socket.on('error', () => {}).on('close', () => inward.destroy());
    endings.push(() => outward.destroy());
  });
  return { proxied: await listening(proxy), silence: () => (isSilent = true) };
}

/** A proxy in front of `target` that counts the RST_STREAM frames of its clients. */
export async function countingResets(
  target: string,
): Promise<{ readonly proxied: string; readonly resets: () => number }> {
  const [host, port] = target.split(':') as [string, string];
  let resets = 0;
  const proxy = createTcpServer((inward) => {
    const outward = connect(Number(port), host);
    let unread = Buffer.alloc(0);
    let at = http2Preface.length;
    inward.on('data', (bytes: Buffer) => {
      unread = Buffer.concat([unread, bytes]);
      for (; at + frameHeadBytes <= unread.length; at += frameHeadBytes + unread.readUIntBE(at, 3)) {
        if (unread[at + 3] === frameTypes.rstStream) resets += 1;
      }
      const whole = Math.min(at, unread.length);
      unread = unread.subarray(whole);
      at -= whole;
    });
    inward.pipe(outward);
    outward.pipe(inward);
    for (const socket of [inward.setNoDelay(), outward.setNoDelay()]) {
      socket.on('error', () => {}).on('close', () => inward.destroy());
    }
    endings.push(() => outward.destroy());
  });
  return { proxied: await listening(proxy), resets: () => resets };
}

export async function failureOf(outcome: Promise<unknown>): Promise<GrpcCallError> {
  const error: unknown = await outcome.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof GrpcCallError)) throw new Error(`it ended otherwise: ${String(error)}`);
  return error;
}
