import { grantLeases } from '../load/lease-load.ts';
import { percentile } from '../load/percentile.ts';
import { ReadLatency } from '../load/read-latency.ts';
import type { Scenario } from '../scenario.ts';
import type { MeasuredServer } from '../servers/measured-server.ts';
import { methods, putRequest, rangeRequest, readAndPutRequest } from '../wire/etcd-messages.ts';
import { runFrameLoad } from '../wire/frame-load.ts';
import { frame } from '../wire/grpc-frames.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';

const keyDigits = 8;
/** A transaction may scan 50,000 keys. */
const txnRows = 49_000;
const calmMs = 1000;
const all = { rangeEnd: 'l' };

interface LongRequest {
  readonly what: string;
  readonly path: string;
  readonly message: Buffer;
  readonly atOnce: number;
}

/** The latency of other clients while one client reads everything. */
export const longLists: Scenario = {
  name: 'long-lists',
  work: '1,000,000 keys and as many leases, read and sorted as a whole: longest read of another client',
  unit: 'ms',
  rounds: 1,
  target: { kind: 'valueAtMost', bound: 20 },
  async measure(server, { quick, log }) {
    const count = quick ? 60_000 : 1_000_000;
    await grantLeases(server, { last: count, ttlSeconds: 3_600 });
    await putKeys(server, count);
    log(`${count} keys and leases written`);
    const txn = readAndPutRequest(rangeRequest('k', { rangeEnd: keyOf(txnRows) }), putRequest('other', ''));
    const requests: readonly LongRequest[] = [
      { what: 'all keys', path: methods.range, message: rangeRequest('k', all), atOnce: 1 },
      {
        what: 'sorted by value',
        path: methods.range,
        message: rangeRequest('k', { ...all, sortOrder: 2, sortTarget: 4 }),
        atOnce: 1,
      },
      { what: 'counted', path: methods.range, message: rangeRequest('k', { ...all, countOnly: true }), atOnce: 1 },
      { what: 'five lists of leases', path: methods.leaseLeases, message: Buffer.alloc(0), atOnce: 5 },
      { what: 'transaction over 49,000', path: methods.txn, message: txn, atOnce: 1 },
    ];
    const details: Record<string, number> = {};
    for (const request of requests) details[`${request.what}, ms`] = await longestReadDuring(server, request);
    return { value: Math.max(...Object.values(details)), details };
  },
};

async function longestReadDuring(server: MeasuredServer, { path, message, atOnce }: LongRequest): Promise<number> {
  const [reader, other] = [await GrpcConnection.open(server.address), await GrpcConnection.open(server.address)];
  const reads = new ReadLatency(reader, keyOf(7));
  await new Promise((resolve) => setTimeout(resolve, calmMs));
  const before = reads.latenciesMs.length;
  await Promise.all(Array.from({ length: atOnce }, () => other.discarded(path, message)));
  await new Promise((resolve) => setTimeout(resolve, calmMs / 5));
  const during = (await reads.stop()).slice(before);
  reader.close();
  other.close();
  return percentile(during, 1);
}

function keyOf(index: number): string {
  return `k${String(index).padStart(keyDigits, '0')}`;
}

async function putKeys(server: MeasuredServer, count: number): Promise<void> {
  await runFrameLoad({
    address: server.address,
    path: methods.put,
    requests: count,
    connections: 4,
    streamsPerConnection: 100,
    framedRequest: (index) => frame(putRequest(keyOf(index), `value ${count - index}`)),
  });
}
