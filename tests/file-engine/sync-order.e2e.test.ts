import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { withTemporaryFolder } from '@tenure/test-support';
import { expect, test } from 'vitest';
import { WriterProcess, busyWriter, straceWorks } from './writer-process.ts';

/**
 * A full segment is sealed by a last write to it, directly after the rename that creates the next segment. A sealed
 * last segment therefore proves that one is missing.
 */
function sealsBehindNewSegments(lines: readonly string[]): { seals: number; tooEarly: number } {
  let [seals, tooEarly] = [0, 0];
  let newSegment = '';
  let isNew = false;
  for (const line of lines) {
    const fileOf = /\bpwrite64\((\d+)/.exec(line)?.[1];
    if (fileOf !== undefined && line.includes('TENURLOG')) newSegment = fileOf;
    else if (fileOf !== undefined && isNew) {
      if (fileOf === newSegment) tooEarly++;
      else seals++;
      isNew = false;
    } else if (/\brename\(.*\.segment"/.test(line)) isNew = !line.includes('log-0000000000000001.segment');
  }
  return { seals, tooEarly };
}

test.runIf(straceWorks())('nothing is acknowledged before it is synced, including the names of new files', async () => {
  await withTemporaryFolder(async (parent) => {
    const traceFile = join(parent, 'trace');
    const writer = new WriterProcess(busyWriter(join(parent, 'data')), { traceFile });
    await writer.exited;
    let acks = 0;
    let unsynced: string[] = [];
    const lines = readFileSync(traceFile, 'utf8').split('\n');
    expect(sealsBehindNewSegments(lines)).toEqual({ seals: 6, tooEarly: 0 });
    for (const line of lines) {
      const call = /\b(write|pwrite64|fdatasync|fsync|rename)(\(| resumed>).*/.exec(line);
      if (call === null) continue;
      if (call[1] === 'write') {
        if (!/\(1, "(acked|saved)/.test(line)) continue;
        expect(unsynced, line).toEqual([]);
        acks++;
      } else if (call[1] === 'pwrite64' || (call[1] === 'rename' && line.includes('.tmp'))) {
        if (call[1] === 'rename' && !line.includes('lock-')) expect(unsynced, line).toEqual([]);
        if (!line.includes('lock-')) unsynced.push(call[1]);
      } else if (line.endsWith('= 0')) {
        const synced = call[1] === 'fsync' ? 'rename' : 'pwrite64';
        unsynced = unsynced.filter((one) => one !== synced);
      }
    }
    expect(acks).toBe(45);
  });
});
