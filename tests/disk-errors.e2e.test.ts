import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SeededRandom } from './crash/seeded-random.ts';
import { Writer } from './crash/writer.ts';
import { straceWorks } from './file-engine/writer-process.ts';
import { type DiskFault, faultyDisk } from './robustness/faulty-disk.ts';
import { TestedServer, temporaryFolder } from './robustness/tested-server.ts';

const writerCount = 6;
const snapshotCount = 50;
const all = { key: Buffer.of(0), rangeEnd: Buffer.of(0) };

let dataDir: string;
let writers: readonly Writer[];

beforeEach(async () => {
  dataDir = await temporaryFolder();
  writers = Array.from({ length: writerCount }, (_, at) => new Writer(`writer-${at}`, new SeededRandom(at)));
});
afterEach(() => rm(dataDir, { recursive: true, force: true }));

function startFaulty(fault: DiskFault): Promise<TestedServer> {
  return TestedServer.start({
    dataDir,
    args: [`--snapshot-count=${snapshotCount}`],
    under: faultyDisk(fault, dataDir),
    env: { UV_THREADPOOL_SIZE: '1' },
  });
}

/** Starts the server on a sound disk and compares what it holds with what was acknowledged. */
async function expectNothingLost(): Promise<void> {
  const server = await TestedServer.start({ dataDir });
  const { kvs } = await server.kv.range(all);
  const held = new Map(kvs.map(({ key, value }) => [Buffer.from(key).toString(), Buffer.from(value).toString()]));
  for (const writer of writers) writer.check(held);
  await server.kv.put({ key: Buffer.from('after') });
  await server.stop();
}

function acknowledged(): number {
  return writers.reduce((sum, writer) => sum + writer.acknowledged.length, 0);
}

describe.runIf(straceWorks())('a server whose disk fails', () => {
  const faults: readonly DiskFault[] = [
    { call: 'fdatasync', error: 'EIO', after: 40 },
    { call: 'fdatasync', error: 'ENOSPC', after: 25 },
    { call: 'pwrite64', error: 'EIO', after: 30 },
    { call: 'pwrite64', error: 'ENOSPC', after: 55 },
    { call: 'pwrite64', error: 'EIO', after: 0, onlySnapshots: true },
    { call: 'fdatasync', error: 'ENOSPC', after: 0, onlySnapshots: true },
  ];
  it.each(faults)('stops at once and loses nothing: %o', async (fault) => {
    const server = await startFaulty(fault);
    await Promise.all(writers.map((writer) => writer.run(server.client)));
    const { code, err } = await server.process.ended;
    server.client.close();
    expect(code).toBe(1);
    expect(err).toMatch(new RegExp(`^Error: the server stopped: .*${fault.error}.*; the server must stop`, 'm'));
    expect(err).toContain(dataDir);
    expect(acknowledged()).toBeGreaterThan(0);
    await expectNothingLost();
  });

  it('that has no room for a snapshot goes on without it, and says so', async () => {
    const server = await startFaulty({ call: 'pwrite64', error: 'ENOSPC', after: 0, onlySnapshots: true });
    const writing = writers.map((writer) => writer.run(server.client));
    const complaint = /there is no room for the snapshot.*no snapshot was written/;
    while (!complaint.test(server.complaints)) await server.maintenance.status({});
    const soFar = acknowledged();
    while (acknowledged() < 2 * soFar) await server.maintenance.status({});
    for (const writer of writers) writer.stop();
    await Promise.all(writing);
    await server.stop();
    await expectNothingLost();
  });
});
