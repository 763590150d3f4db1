import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withTemporaryFolder } from '../../packages/server/src/engines/testing/temporary-folder.ts';
import { WriterProcess, busyWriter, straceWorks } from './writer-process.ts';

test.runIf(straceWorks())('nothing is acknowledged before it is synced, the names of new files too', async () => {
  await withTemporaryFolder(async (parent) => {
    const traceFile = join(parent, 'trace');
    const writer = new WriterProcess(busyWriter(join(parent, 'data')), { traceFile });
    await writer.exited;
    let acks = 0;
    let unsynced: string[] = [];
    for (const line of readFileSync(traceFile, 'utf8').split('\n')) {
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
