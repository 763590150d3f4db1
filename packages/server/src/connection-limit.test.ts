import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { connectionLimit } from './connection-limit.ts';

const limitsOf = (openFiles: string): string =>
  [
    'Limit                     Soft Limit           Hard Limit           Units',
    `Max open files   ${openFiles}  files`,
  ].join('\n');

test('the connections of clients leave enough files for the log', () => {
  expect(connectionLimit(10_000, 0, limitsOf('1048576   1048576'))).toBe(10_000);
  expect(connectionLimit(10_000, 0, limitsOf('1024      1024'))).toBe(832);
  expect(connectionLimit(10_000, 256, limitsOf('1024      1024'))).toBe(576);
  expect(connectionLimit(10_000, 0, limitsOf('64        64'))).toBe(16);
  expect(connectionLimit(10_000, 0, limitsOf('unlimited unlimited'))).toBe(10_000);
  expect(connectionLimit(10_000, 0, '')).toBe(10_000);
});

test.runIf(process.platform === 'linux')('the limit of this process is read from the system', () => {
  const { stdout } = spawnSync('sh', ['-c', 'ulimit -n 300; cat /proc/self/limits'], { encoding: 'utf8' });
  expect(connectionLimit(10_000, 0, stdout)).toBe(108);
});
