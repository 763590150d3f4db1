import * as fs from 'node:fs';
import { withTemporaryFolder } from '@tenure/test-support';
import { expect, test } from 'vitest';
import { logStart } from '../chain-hash.ts';
import { entries } from '../testing/engine-case.ts';
import { openFileEngine } from './file-engine.ts';
import type { FileSystemCalls } from './file-system-calls.ts';
import { FileSystem } from './file-system.ts';
import { recordHeaderBytes } from './segment-format.ts';

/** A folder with a log that was closed: its last record is a mark. */
async function writeLog(folder: string): Promise<void> {
  const engine = await openFileEngine({ folder });
  await engine.append(entries(2, 20), logStart);
  await engine.close();
}

/** Its sync may have failed in the last process, and no later sync would report that. */
test('writes the mark at the end of the log again before an append follows it', async () => {
  await withTemporaryFolder(async (folder) => {
    await writeLog(folder);
    const written: number[] = [];
    const calls: FileSystemCalls = {
      ...fs,
      write: (fd, buffer, offset, length, position, done) => {
        written.push(length);
        fs.write(fd, buffer, offset, length, position, done);
      },
    };
    const engine = await openFileEngine({ folder, files: new FileSystem(calls) });
    expect(written).toEqual([recordHeaderBytes]);
    await engine.close();
  });
});

test('does not write back what the disk returns wrongly when the last record is read again', async () => {
  await withTemporaryFolder(async (folder) => {
    await writeLog(folder);
    const calls: FileSystemCalls = {
      ...fs,
      read: (fd, buffer, offset, length, position, done) => {
        fs.read(fd, buffer, offset, length, position, (error, read) => {
          if (length === recordHeaderBytes && position > 0) buffer[offset + 20]! ^= 1;
          done(error, read);
        });
      },
    };
    const refused = openFileEngine({ folder, files: new FileSystem(calls) });
    await expect(refused).rejects.toMatchObject({ code: 'damaged' });
    const engine = await openFileEngine({ folder });
    expect((await engine.tail()).index).toBe(2);
    await engine.close();
  });
});
