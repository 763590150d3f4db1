import type { MeasuredServer } from '../servers/measured-server.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';
import { RawConnection } from '../wire/raw-connection.ts';
import type { Sample } from '../scenario.ts';
import { PeakMemory } from './peak-memory.ts';
import { percentile } from './percentile.ts';
import { PutLatency } from './put-latency.ts';

const mebibyte = 1024 * 1024;

export interface UnreadWaves {
  readonly waves: number;
  readonly connections: number;
  /** How long the clients of a wave leave their replies unread. */
  readonly waveMs: number;
  /** The frames that one client sends. */
  readonly requestsOf: (client: RawConnection) => Buffer;
  readonly log: (text: string) => void;
}

/**
 * Waves of clients send requests and read nothing, while another client puts: peak memory above the idle server, in
 * MiB.
 */
export async function measureUnreadWaves(
  server: MeasuredServer,
  { waves, connections, waveMs, requestsOf, log }: UnreadWaves,
): Promise<Sample> {
  const putting = await GrpcConnection.open(server.address);
  const puts = new PutLatency(putting);
  const memory = new PeakMemory(server);
  for (let wave = 1; wave <= waves; wave += 1) {
    const clients = await Promise.all(
      Array.from({ length: connections }, () => RawConnection.open(server.address, { windowBytes: 0 })),
    );
    const requests = clients.map(requestsOf);
    await Promise.all(clients.map((client, at) => client.send(requests[at] as Buffer)));
    await new Promise((resolve) => setTimeout(resolve, waveMs));
    for (const client of clients) client.close();
    log(`wave ${wave}: ${(server.rssBytes() / mebibyte).toFixed(0)} MiB`);
  }
  const peakBytes = memory.stop();
  const latencies = await puts.stop();
  putting.close();
  return { value: peakBytes / mebibyte, details: { 'longest put of others, ms': percentile(latencies, 1) } };
}
