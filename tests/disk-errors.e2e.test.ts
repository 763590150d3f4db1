import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openFileEngine } from '../packages/server/src/engines/file/file-engine.ts';
import { entry } from '../packages/server/src/engines/testing/engine-case.ts';
import { SeededRandom } from '@tenure/test-support';
import { Writer } from './crash/writer.ts';
import { straceWorks } from './file-engine/writer-process.ts';
import { type DiskFault, faultyDisk } from './robustness/faulty-disk.ts';
import { TestedServer, temporaryFolder } from './robustness/tested-server.ts';

const writerCount = 6;
const snapshotCount = 50;
const all = { key: Buffer.of(0), rangeEnd: Buffer.of(0) };

/** Clients that write, and a folder on a disk that fails at first and works afterwards. */
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

  /** Starts the server on a working disk and compares its content with the acknowledged writes. */
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
  test.for(faults)('stops at once and loses nothing: %o', async (fault, { onTestFinished }) => {
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

  test('without space for a snapshot continues without it, and reports that', async ({ onTestFinished }) => {
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

const diskBytes = 4 * 1024 * 1024;

/** A small file system of its own that the test can fill; undefined where mounting is not permitted. */
async function smallDisk(onEnd: (end: () => Promise<void>) => void): Promise<string | undefined> {
  const path = await temporaryFolder();
  onEnd(() => rm(path, { recursive: true, force: true }));
  const options = `size=${diskBytes},mode=700`;
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', path]).status !== 0) return undefined;
  onEnd(async () => void spawnSync('umount', [path]));
  return path;
}

function fill(disk: string): string {
  const filler = join(disk, 'filler');
  for (let bytes = diskBytes; bytes >= 1; bytes = Math.floor(bytes / 2)) {
    try {
      for (;;) writeFileSync(filler, Buffer.alloc(bytes), { flag: 'a' });
    } catch (error) {
      expect(error).toMatchObject({ code: 'ENOSPC' });
    }
  }
  return filler;
}

/** Removes the space that was allocated ahead of the log. A log that was closed exactly at its end has none. */
function cutRoomAhead(dataDir: string): void {
  for (const name of readdirSync(dataDir).filter((file) => file.endsWith('.segment'))) {
    const bytes = readFileSync(join(dataDir, name));
    truncateSync(join(dataDir, name), bytes.findLastIndex((byte) => byte !== 0) + 1);
  }
}

describe('a server on a full disk', limits, () => {
  test('starts in the space allocated ahead of its log; else reports what to do, without loss', async (context) => {
    const disk = await smallDisk(context.onTestFinished);
    if (disk === undefined) context.skip('mounting a file system is not permitted here');
    const dataDir = join(disk as string, 'data');
    let server = await TestedServer.start({ dataDir });
    const value = Buffer.alloc(50_000, 'x');
    const { header } = await server.kv.put({ key: Buffer.from('kept'), value });
    await server.stop();

    const filler = fill(disk as string);
    server = await TestedServer.start({ dataDir });
    await server.kv.deleteRange({ key: Buffer.from('kept') });
    await server.kv.compact({ revision: header?.revision ?? 0n });
    await server.kv.put({ key: Buffer.from('last') });
    await server.stop();

    cutRoomAhead(dataDir);
    fill(disk as string);
    const fullDisk = /Error: .*ENOSPC.*the disk is full \(0\.0 MiB free\): free 16 MiB or more of other files there/m;
    // One or two more starts use up the rest of the last page.
    for (let starts = 1; ; starts++) {
      expect(starts).toBeLessThan(20);
      const refused = await TestedServer.start({ dataDir }).catch((error: Error) => error);
      if (refused instanceof TestedServer) {
        await refused.stop();
        continue;
      }
      expect(refused.message).toMatch(fullDisk);
      break;
    }
    rmSync(filler);
    server = await TestedServer.start({ dataDir });
    const { kvs } = await server.kv.range(all);
    expect(kvs.map(({ key }) => Buffer.from(key).toString())).toEqual(['last']);
    await server.stop();
  });

  test('writes its log without allocating ahead when the disk has no space', async (context) => {
    const disk = await smallDisk(context.onTestFinished);
    if (disk === undefined) context.skip('mounting a file system is not permitted here');
    const options = { folder: join(disk as string, 'data'), preallocateBytes: 2 * diskBytes };
    for (const count of [1, 2]) {
      const engine = await openFileEngine(options);
      const end = await engine.append([entry('one'), entry('two')], await engine.tail());
      expect(end.index).toBe(2 * count);
      await engine.close();
    }
  });
});
