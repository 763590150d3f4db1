import { PeakMemory } from '../load/peak-memory.ts';
import { percentile } from '../load/percentile.ts';
import { PutLatency } from '../load/put-latency.ts';
import type { Scenario } from '../scenario.ts';
import { methods, putRequest, rangeRequest } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';
import { frame } from '../wire/grpc-frames.ts';
import { grpcHead, RawConnection } from '../wire/raw-connection.ts';

const keys = 20;
const valueBytes = 1_400_000;
const callsPerConnection = 10;
/** How long a wave of clients holds what it has asked for. */
const waveMs = 2000;
const mebibyte = 1024 * 1024;

/** Clients ask for all that there is, many times over, and read nothing. */
export const unreadReplies: Scenario = {
  name: 'unread-replies',
  work: 'Ranges of 28 MB that nobody reads, five times 60 connections with 10 each: most memory beyond the idle server',
  unit: 'MiB',
  rounds: 1,
  target: { kind: 'valueAtMost', bound: 1024 },
  async measure(server, { quick, log }) {
    const [waves, connections] = quick ? [1, 10] : [5, 60];
    const connection = await GrpcConnection.open(server.address);
    const value = 'v'.repeat(valueBytes);
    for (let key = 0; key < keys; key += 1) await connection.unary(methods.put, putRequest(`large/${key}`, value));
    const head = grpcHead(methods.range);
    const message = frame(rangeRequest('large/', { rangeEnd: 'large0' }));
    const puts = new PutLatency(connection);
    const memory = new PeakMemory(server);
    for (let wave = 1; wave <= waves; wave += 1) {
      const clients = await Promise.all(
        Array.from({ length: connections }, () => RawConnection.open(server.address, { windowBytes: 0 })),
      );
      await Promise.all(clients.map((client) => client.send(client.calls(callsPerConnection, head, message))));
      await new Promise((resolve) => setTimeout(resolve, waveMs));
      for (const client of clients) client.close();
      log(`wave ${wave}: ${(server.rssBytes() / mebibyte).toFixed(0)} MiB`);
    }
    const peakBytes = memory.stop();
    const latencies = await puts.stop();
    connection.close();
    return { value: peakBytes / mebibyte, details: { 'longest put of others, ms': percentile(latencies, 1) } };
  },
};
