import { rm } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { SeededRandom } from './crash/seeded-random.ts';
import { Writer } from './crash/writer.ts';
import { straceWorks } from './file-engine/writer-process.ts';
import { type DiskFault, faultyDisk } from './robustness/faulty-disk.ts';
import { TestedServer, temporaryFolder } from './robustness/tested-server.ts';

const writerCount = 6;
const snapshotCount = 50;
const all = { key: Buffer.of(0), rangeEnd: Buffer.of(0) };

/** Clients that write, and a folder on a disk that fails at first and is sound afterwards. */
class FaultyFolder {
  readonly path: string;
  readonly writers = Array.from({ length: writerCount }, (_, at) => new Writer(`writer-${at}`, new SeededRandom(at)));

  private constructor(path: string) {
    this.path = path;
  }

  static async create(onEnd: (end: () => Promise<void>) => void): Promise<FaultyFolder> {
    const path = await temporaryFolder();
    onEnd(() => rm(path, { recursive: true, force: true }));
    return new FaultyFolder(path);
  }

  get acknowledged(): number {
    return this.writers.reduce((sum, writer) => sum + writer.acknowledged.length, 0);
  }

  start(fault: DiskFault): Promise<TestedServer> {
    return TestedServer.start({
      dataDir: this.path,
      args: [`--snapshot-count=${snapshotCount}`],
      under: faultyDisk(fault, this.path),
      env: { UV_THREADPOOL_SIZE: '1' },
    });
  }

  /** Starts the server on a sound disk and compares what it holds with what was acknowledged. */
  async expectNothingLost(): Promise<void> {
    const server = await TestedServer.start({ dataDir: this.path });
    const { kvs } = await server.kv.range(all);
    const held = new Map(kvs.map(({ key, value }) => [Buffer.from(key).toString(), Buffer.from(value).toString()]));
    for (const writer of this.writers) writer.check(held);
    await server.kv.put({ key: Buffer.from('after') });
    await server.stop();
  }
}

const limits = { timeout: 180_000 };

describe.runIf(straceWorks()).concurrent('a server whose disk fails', limits, () => {
  const faults: readonly DiskFault[] = [
    { call: 'fdatasync', error: 'EIO', after: 40 },
    { call: 'fdatasync', error: 'ENOSPC', after: 25 },
    { call: 'pwrite64', error: 'EIO', after: 30 },
    { call: 'pwrite64', error: 'ENOSPC', after: 55 },
    { call: 'pwrite64', error: 'EIO', after: 0, onlySnapshots: true },
    { call: 'fdatasync', error: 'ENOSPC', after: 0, onlySnapshots: true },
  ];
  it.for(faults)('stops at once and loses nothing: %o', async (fault, { onTestFinished }) => {
    const folder = await FaultyFolder.create(onTestFinished);
    const server = await folder.start(fault);
    await Promise.all(folder.writers.map((writer) => writer.run(server.client)));
    const { code, err } = await server.process.ended;
    server.client.close();
    expect(code).toBe(1);
    expect(err).toMatch(new RegExp(`^Error: the server stopped: .*${fault.error}.*; the server must stop`, 'm'));
    expect(err).toContain(folder.path);
    expect(folder.acknowledged).toBeGreaterThan(0);
    await folder.expectNothingLost();
  });

  it('that has no room for a snapshot goes on without it, and says so', async ({ onTestFinished }) => {
    const folder = await FaultyFolder.create(onTestFinished);
    const server = await folder.start({ call: 'pwrite64', error: 'ENOSPC', after: 0, onlySnapshots: true });
    const writing = folder.writers.map((writer) => writer.run(server.client));
    const complaint = /there is no room for the snapshot.*no snapshot was written/;
    while (!complaint.test(server.complaints)) await server.maintenance.status({});
    const soFar = folder.acknowledged;
    while (folder.acknowledged < 2 * soFar) await server.maintenance.status({});
    for (const writer of folder.writers) writer.stop();
    await Promise.all(writing);
    await server.stop();
    await folder.expectNothingLost();
  });
});
