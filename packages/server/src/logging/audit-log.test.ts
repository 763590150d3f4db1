import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { openAuditLog } from './audit-log.ts';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tenure-audit-'));
  folders.push(folder);
  return folder;
}

const unexpected = (problem: string): never => {
  throw new Error(problem);
};

test('each record is a line with its time, in a file that others cannot read', async () => {
  const path = join(newFolder(), 'audit.jsonl');
  for (const by of ['ann', 'bob']) {
    const log = openAuditLog({ path, onTrouble: unexpected });
    log.record({ by, keys: [['a\n']] });
    await log.close();
  }
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  const records = lines.map((line): unknown => JSON.parse(line));
  expect(records).toEqual([
    { time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/), by: 'ann', keys: [['a\n']] },
    { time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/), by: 'bob', keys: [['a\n']] },
  ]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('a file that cannot be opened is told at once', () => {
  expect(() => openAuditLog({ path: newFolder(), onTrouble: unexpected })).toThrow('EISDIR');
});

test('a disk that takes nothing costs records and no request, and is told once', async () => {
  const troubles: string[] = [];
  const log = openAuditLog({ path: '/dev/full', onTrouble: (problem) => troubles.push(problem) });
  const record = { by: 'ann', text: 'x'.repeat(64 * 1024) };
  for (let round = 0; round < 100; round += 1) {
    for (let count = 0; count < 10; count += 1) log.record(record);
    await new Promise(setImmediate);
  }
  await log.close();
  expect(troubles.length).toBeGreaterThan(0);
  expect(new Set(troubles).size).toBe(troubles.length);
});
