import { get } from 'node:http';
import { percentile } from '../load/percentile.ts';
import { PutLatency } from '../load/put-latency.ts';
import { expectWork } from '../load/unary-load.ts';
import type { Scenario } from '../scenario.ts';
import type { MeasuredServer } from '../servers/measured-server.ts';
import { methods, putRequest, rangeCountOf, rangeRequest } from '../wire/etcd-messages.ts';
import { runFrameLoad } from '../wire/frame-load.ts';
import { frame } from '../wire/grpc-frames.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';
import { bytesOf, varintOf } from '../wire/protobuf.ts';

const keyDigits = 15;
const keyOffset = 7;
const value = 'v'.repeat(64);
const settleMs = 2000;
const mebibyte = 1024 * 1024;

/**
 * The longest pause as measured by the server's own event loop; etcd has none, so its put latencies are shown instead.
 */
export const snapshotPause: Scenario = {
  name: 'snapshot-pause',
  work: 'Snapshot with 1,000,000 keys while puts go on: longest pause of the event loop',
  unit: 'ms',
  rounds: 1,
  target: { kind: 'valueAtMost', bound: 50 },
  async measure(server, { quick, log }) {
    const keys = quick ? 20_000 : 1_000_000;
    await putKeys(server, keys);
    const connection = await GrpcConnection.open(server.address);
    const all = await connection.unary(methods.range, rangeRequest('k', { rangeEnd: 'l', countOnly: true }));
    expectWork('keys', rangeCountOf(all), keys);
    log(`${keys} keys written`);
    const writing = await GrpcConnection.open(server.address);
    const puts = new PutLatency(writing);
    await new Promise((resolve) => setTimeout(resolve, settleMs));
    const before = puts.latenciesMs.length;
    await longestPauseMs(server); // each scrape restarts the measurement
    const startedMs = performance.now();
    const bytes = await readSnapshot(connection);
    const tookMs = performance.now() - startedMs;
    const pauseMs = await longestPauseMs(server);
    const during = (await puts.stop()).slice(before);
    connection.close();
    writing.close();
    if (bytes < keys * (keyDigits + value.length))
      throw new Error(`the snapshot of ${bytes} bytes cannot hold the keys`);
    return {
      value: pauseMs,
      details: {
        'longest put, ms': percentile(during, 1),
        'put p99, ms': percentile(during, 0.99),
        'snapshot, MiB': bytes / mebibyte,
        'snapshot took, s': tookMs / 1000,
        'memory, MiB': server.rssBytes() / mebibyte,
      },
    };
  },
};

async function putKeys(server: MeasuredServer, count: number): Promise<void> {
  const framed = frame(putRequest('k'.padEnd(keyDigits + 1, '0'), value));
  await runFrameLoad({
    address: server.address,
    path: methods.put,
    requests: count,
    connections: 8,
    streamsPerConnection: 100,
    framedRequest: (index) => {
      framed.write(String(index).padStart(keyDigits, '0'), keyOffset + 1, 'latin1');
      return framed;
    },
  });
}

/** Reads a whole snapshot and returns its size; the last part must report no remaining bytes. */
async function readSnapshot(connection: GrpcConnection): Promise<number> {
  let bytes = 0;
  let remaining = -1;
  const stream = connection.stream(methods.snapshot, (message) => {
    remaining = varintOf(message, 2);
    bytes += bytesOf(message, 3).length;
  });
  stream.send(Buffer.alloc(0));
  stream.end();
  await stream.closed;
  if (remaining !== 0) throw new Error(`the snapshot ended with ${remaining} bytes to come`);
  return bytes;
}

/** The longest delay of the event loop since the last call, from the server's metrics; NaN without that metric. */
async function longestPauseMs(server: MeasuredServer): Promise<number> {
  const text = await new Promise<string>((resolve, reject) => {
    get(`http://${server.address}/metrics`, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => (body += part));
      response.on('end', () => resolve(body));
    }).on('error', reject);
  });
  const match = /^tenure_event_loop_delay_seconds\{quantile="1"\} (\S+)$/m.exec(text);
  return match === null ? Number.NaN : Number(match[1]) * 1000;
}
