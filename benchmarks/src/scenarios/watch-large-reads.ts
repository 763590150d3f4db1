import { monitorEventLoopDelay } from 'node:perf_hooks';
import { LargeReaders } from '../load/large-readers.ts';
import { percentile } from '../load/percentile.ts';
import { WatchLatency } from '../load/watch-latency.ts';
import type { Scenario } from '../scenario.ts';
import { methods, putRequest } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const keys = 50;
const valueBytes = 100_000;
const readers = 4;

/**
 * The latency of a watch while other clients read large ranges. Many short rounds: a busy moment affects both servers.
 */
export const watchLargeReads: Scenario = {
  name: 'watch-large-reads',
  work: 'A watch while four clients read ranges of 5 MB, two seconds: longest time from a put to its event',
  unit: 'ms',
  rounds: 12,
  target: { kind: 'ratioAtMost', bound: 1 },
  async measure(server, { quick }) {
    const runMs = quick ? 500 : 2_000;
    const { address } = server;
    const connection = await GrpcConnection.open(address);
    const value = 'v'.repeat(valueBytes);
    for (let key = 0; key < keys; key += 1) await connection.unary(methods.put, putRequest(`large/${key}`, value));
    connection.close();
    const minBytes = keys * valueBytes;
    const load = new LargeReaders({ address, key: 'large/', rangeEnd: 'large0', clients: readers, minBytes });
    const ownDelay = monitorEventLoopDelay({ resolution: 1 });
    ownDelay.enable();
    const latenciesMs = await new WatchLatency(address).measure(runMs);
    ownDelay.disable();
    const reads = await load.stop();
    return {
      value: percentile(latenciesMs, 1),
      details: {
        'p50, ms': percentile(latenciesMs, 0.5),
        'p90, ms': percentile(latenciesMs, 0.9),
        'reads of 5 MB, 1/s': reads / (runMs / 1000),
        // The time taken from the measuring client by the machine and by reading replies.
        'longest pause of the client, ms': ownDelay.max / 1e6,
      },
    };
  },
};
