import { PeakMemory } from '../load/peak-memory.ts';
import { percentile } from '../load/percentile.ts';
import { PutLatency } from '../load/put-latency.ts';
import type { Scenario } from '../scenario.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';
import { httpGetHead, RawConnection } from '../wire/raw-connection.ts';

const requestsPerConnection = 1000;
/** How long a wave of clients holds what it has asked for. */
const waveMs = 3000;
const mebibyte = 1024 * 1024;

/** Clients ask for the metrics over HTTP/2, many times over, and read nothing. */
export const unreadHttp: Scenario = {
  name: 'unread-http',
  work: 'GET /metrics over HTTP/2 that nobody reads, three times 20,000: most memory beyond the idle server',
  unit: 'MiB',
  rounds: 1,
  target: { kind: 'valueAtMost', bound: 384 },
  async measure(server, { quick, log }) {
    const [waves, connections] = quick ? [1, 4] : [3, 20];
    const connection = await GrpcConnection.open(server.address);
    const head = httpGetHead('/metrics');
    const puts = new PutLatency(connection);
    const memory = new PeakMemory(server);
    for (let wave = 1; wave <= waves; wave += 1) {
      const clients = await Promise.all(
        Array.from({ length: connections }, () => RawConnection.open(server.address, { windowBytes: 0 })),
      );
      const requests = clients.map((client) => client.calls(requestsPerConnection, head, Buffer.alloc(0)));
      await Promise.all(clients.map((client, at) => client.send(requests[at] as Buffer)));
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
