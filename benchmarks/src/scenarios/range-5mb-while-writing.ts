import { monitorEventLoopDelay } from 'node:perf_hooks';
import { LargeReaders } from '../load/large-readers.ts';
import { percentile } from '../load/percentile.ts';
import { PutLatency } from '../load/put-latency.ts';
import { ReadLatency } from '../load/read-latency.ts';
import type { Scenario } from '../scenario.ts';
import { methods, putRequest } from '../wire/etcd-messages.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const keys = 50;
const valueBytes = 100_000;
const readers = 4;
const longestDetail = 'longest put or read of one key, ms';

export const rangeLargeWhileWriting: Scenario = {
  name: 'range-5mb-while-writing',
  work: 'Ranges of 5 MB by four clients, while eight others put',
  unit: '1/s',
  rounds: 6,
  target: { kind: 'ratioAtLeast', bound: 1.2 },
  furtherRows: [
    {
      name: 'range-5mb-longest-wait',
      work: 'Ranges of 5 MB by four clients: longest put or read of one key of others',
      unit: 'ms',
      target: { kind: 'valueAtMost', bound: 20 },
      detail: longestDetail,
    },
  ],
  async measure(server, { quick }) {
    const runMs = quick ? 1_000 : 5_000;
    const { address } = server;
    const value = 'v'.repeat(valueBytes);
    const [writing, reading] = [await GrpcConnection.open(address), await GrpcConnection.open(address)];
    for (let key = 0; key < keys; key += 1) await writing.unary(methods.put, putRequest(`large/${key}`, value));
    const ownDelay = monitorEventLoopDelay({ resolution: 1 });
    const cpuBeforeMs = server.cpuMs();
    const startedMs = performance.now();
    const minBytes = keys * valueBytes;
    const load = new LargeReaders({ address, key: 'large/', rangeEnd: 'large0', clients: readers, minBytes });
    const [puts, gets] = [new PutLatency(writing), new ReadLatency(reading)];
    ownDelay.enable();
    await new Promise((resolve) => setTimeout(resolve, runMs));
    ownDelay.disable();
    const reads = await load.stop();
    const seconds = (performance.now() - startedMs) / 1000;
    const [putsMs, getsMs] = [await puts.stop(), await gets.stop()];
    const cpuMs = server.cpuMs() - cpuBeforeMs;
    writing.close();
    reading.close();
    return {
      value: reads / seconds,
      details: {
        [longestDetail]: Math.max(percentile(putsMs, 1), percentile(getsMs, 1)),
        // With that of the puts and the small reads, which both systems serve as fast as they can.
        'processor time, cores': cpuMs / 1000 / seconds,
        'puts, 1/s': putsMs.length / seconds,
        'put p99, ms': percentile(putsMs, 0.99),
        'reads of one key, 1/s': getsMs.length / seconds,
        // The time taken from the measuring client by the machine and by its own thread of large reads.
        'longest pause of the client, ms': ownDelay.max / 1e6,
      },
    };
  },
};
