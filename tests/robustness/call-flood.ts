import { connect, type ClientHttp2Session, type IncomingHttpHeaders } from 'node:http2';
import { framed } from '../../conformance/client/http2-call.ts';
import type { MessageCall, MessageCalls } from './inputs/message-calls.ts';

export interface FloodOptions {
  /** host:port */
  readonly address: string;
  readonly calls: MessageCalls;
  /** The approximate minimum of messages to send. */
  readonly messages: number;
}

export interface FloodReport {
  readonly messages: number;
  /** The number of calls that ended with each gRPC status, by method and status. */
  readonly statuses: ReadonlyMap<string, number>;
}

const connections = 4;
const callsAtOnce = 40;
const callTimeoutMs = 30_000;
/** The message with which a client cancels an endless stream. */
const cancelled = 8;
const okStatus = '0';
const cancelledStatus = '1';
/** Calls that wait for others, or that never end. Their client goes away after a while. */
const waitingPaths: readonly string[] = [
  '/v3lockpb.Lock/Lock',
  '/v3electionpb.Election/Campaign',
  '/v3electionpb.Election/Observe',
];
const patienceMs = 200;

/** Makes calls on several connections, many at a time. Rejects when a call gets no answer or an invalid status. */
export async function floodWithCalls({ address, calls, messages }: FloodOptions): Promise<FloodReport> {
  const statuses = new Map<string, number>();
  let sent = 0;
  const caller = async (session: ClientHttp2Session): Promise<void> => {
    while (sent < messages) {
      const call = calls.next();
      sent += call.messages.length;
      const status = await answerTo(session, call);
      const name = `${call.method.path} ${status}`;
      statuses.set(name, (statuses.get(name) ?? 0) + 1);
    }
  };
  const connection = async (): Promise<void> => {
    const session = connect(`http://${address}`);
    session.on('error', () => {
      // The calls on it fail with the reason.
    });
    await Promise.all(Array.from({ length: callsAtOnce }, () => caller(session)));
    session.close();
  };
  await Promise.all(Array.from({ length: connections }, connection));
  return { messages: sent, statuses };
}

/** The gRPC status of a call. */
function answerTo(session: ClientHttp2Session, call: MessageCall): Promise<string> {
  const { path } = call.method;
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => {
      const hex = Buffer.concat(call.messages).subarray(0, 2_000).toString('hex');
      reject(new Error(`${path} ${why}; ${call.messages.length} messages: ${hex}`));
    };
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const timer = setTimeout(() => fail('was not answered in time'), callTimeoutMs);
    let status: string | undefined;
    const patience = setTimeout(() => {
      if (!waitingPaths.includes(path)) return;
      status ??= cancelledStatus;
      stream.close(cancelled);
    }, patienceMs);
    const note = (headers: IncomingHttpHeaders): void => {
      const found = headers['grpc-status'];
      if (typeof found === 'string') status = found;
    };
    stream.on('response', note);
    stream.on('trailers', note);
    stream.on('data', () => {
      if (path !== '/grpc.health.v1.Health/Watch') return;
      status ??= okStatus;
      stream.close(cancelled);
    });
    stream.on('error', (error) => fail(error.message));
    stream.on('close', () => {
      clearTimeout(timer);
      clearTimeout(patience);
      if (status !== undefined && /^(\d|1[0-6])$/.test(status)) resolve(status);
      else fail(`ended without a status (stream reset with ${stream.rstCode})`);
    });
    stream.end(Buffer.concat(call.messages.map((message) => framed(message))));
  });
}
