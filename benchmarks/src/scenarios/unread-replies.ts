import { measureUnreadWaves } from '../load/unread-waves.ts';
import type { Scenario } from '../scenario.ts';
import { methods, putRequest, rangeRequest } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';
import { frame } from '../wire/grpc-frames.ts';
import { grpcHead } from '../wire/raw-connection.ts';

const keys = 20;
const valueBytes = 1_400_000;
const callsPerConnection = 10;
const waveMs = 2000;

/** Clients request all keys, many times, and read nothing. */
export const unreadReplies: Scenario = {
  name: 'unread-replies',
  work: '600 unread replies of 28 MB over 60 connections, five times: peak memory above that of the idle server',
  unit: 'MiB',
  rounds: 1,
  target: { kind: 'valueAtMost', bound: 1024 },
  async measure(server, { quick, log }) {
    const [waves, connections] = quick ? [1, 10] : [5, 60];
    const connection = await GrpcConnection.open(server.address);
    const value = 'v'.repeat(valueBytes);
    for (let key = 0; key < keys; key += 1) await connection.unary(methods.put, putRequest(`large/${key}`, value));
    connection.close();
    const head = grpcHead(methods.range);
    const message = frame(rangeRequest('large/', { rangeEnd: 'large0' }));
    return measureUnreadWaves(server, {
      waves,
      connections,
      waveMs,
      requestsOf: (client) => client.calls(callsPerConnection, head, message),
      log,
    });
  },
};
