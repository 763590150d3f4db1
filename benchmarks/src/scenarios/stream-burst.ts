import { percentile } from '../load/percentile.ts';
import { ReadLatency } from '../load/read-latency.ts';
import type { Scenario } from '../scenario.ts';
import type { MeasuredServer } from '../servers/measured-server.ts';
import { methods, putRequest, watchCreateRequest } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';
import { frame } from '../wire/grpc-frames.ts';
import { type CallOptions, grpcHead, RawConnection } from '../wire/raw-connection.ts';

const connections = 10;
const windowBytes = 65_535;
/** The time before the burst, for reads to settle, and after it, for its effects to show. */
const calmMs = 1000;
const putsDetail = 'with 100,000 puts reset at once, ms';

/** A burst of streams that their clients do not use, while another client reads. */
interface Burst {
  readonly path: string;
  readonly message: Buffer;
  readonly streams: number;
  readonly options: CallOptions;
}

export const streamBurst: Scenario = {
  name: 'stream-burst',
  work: '50,000 watch streams opened and reset over 10 connections: longest read of another client',
  unit: 'ms',
  rounds: 3,
  target: { kind: 'ratioAtMost', bound: 1 },
  furtherRows: [
    {
      name: 'put-burst',
      work: '100,000 puts sent and reset over 10 connections: longest read of another client',
      unit: 'ms',
      target: { kind: 'ratioAtMost', bound: 1 },
      detail: putsDetail,
    },
  ],
  withEmptyHandler: true,
  async measure(server, { quick }) {
    const share = quick ? 0.1 : 1;
    const watch = frame(watchCreateRequest('w', 'x'));
    const put = frame(putRequest('burst', 'v'.repeat(64)));
    const watches = { path: methods.watch, message: watch, streams: 50_000 * share };
    const resetWatches = { ...watches, options: { leaveOpen: true, reset: 'when all are open' } } as const;
    const resetPuts = {
      path: methods.put,
      message: put,
      streams: 100_000 * share,
      options: { reset: 'at once' },
    } as const;
    const watchMs = await longestReadDuring(server, resetWatches);
    const putMs = await longestReadDuring(server, resetPuts);
    return { value: watchMs, details: { [putsDetail]: putMs } };
  },
};

async function longestReadDuring(server: MeasuredServer, burst: Burst): Promise<number> {
  const reader = await GrpcConnection.open(server.address);
  const clients = await Promise.all(
    Array.from({ length: connections }, () => RawConnection.open(server.address, { windowBytes })),
  );
  const head = grpcHead(burst.path);
  const perClient = burst.streams / connections;
  const bytes = clients.map((client) => client.calls(perClient, head, burst.message, burst.options));
  const reads = new ReadLatency(reader);
  await new Promise((resolve) => setTimeout(resolve, calmMs));
  const before = reads.latenciesMs.length;
  await Promise.all(clients.map((client, at) => client.send(bytes[at] as Buffer)));
  await new Promise((resolve) => setTimeout(resolve, calmMs));
  const during = (await reads.stop()).slice(before);
  for (const client of clients) client.close();
  reader.close();
  return percentile(during, 1);
}
