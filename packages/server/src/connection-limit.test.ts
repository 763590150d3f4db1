import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { connectionLimit, leastConnections, maxPeerConnections } from './connection-limit.ts';

const limitsOf = (openFiles: string): string =>
  [
    'Limit                     Soft Limit           Hard Limit           Units',
    `Max open files   ${openFiles}  files`,
  ].join('\n');

test('the connections of clients leave enough files for the log', () => {
  expect(connectionLimit(10_000, 0, limitsOf('1048576   1048576'))).toBe(10_000);
  expect(connectionLimit(10_000, 0, limitsOf('1024      1024'))).toBe(832);
  expect(connectionLimit(10_000, 256, limitsOf('1024      1024'))).toBe(576);
  expect(connectionLimit(256, 16, limitsOf('1024      1024'))).toBe(256);
  expect(connectionLimit(10_000, 0, limitsOf('64        64'))).toBe(16);
  expect(connectionLimit(10_000, 0, limitsOf('unlimited unlimited'))).toBe(10_000);
  expect(connectionLimit(10_000, 0, '')).toBe(10_000);
});

test.runIf(process.platform === 'linux')('the limit of this process is read from the system', () => {
  const { stdout } = spawnSync('sh', ['-c', 'ulimit -n 300; cat /proc/self/limits'], { encoding: 'utf8' });
  expect(connectionLimit(10_000, 0, stdout)).toBe(108);
});

test('clients and servers together leave the files that the server needs, from 224 files on', () => {
  for (const files of [224, 256, 300, 464, 480, 1_024, 20_000]) {
    const clients = connectionLimit(10_000, maxPeerConnections, limitsOf(`${files} ${files}`));
    const servers = connectionLimit(maxPeerConnections, leastConnections, limitsOf(`${files} ${files}`));
    expect(clients + servers, `${files} files`).toBeLessThanOrEqual(files - 192);
  }
});
