import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, test } from 'vitest';

const run = promisify(execFile);
const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const processes = 4;
const turns = 25;
const deadlineMs = 120_000;

/** In processes of their own, as built. */
describe('tenure as it is published', () => {
  test('excludes processes from each other by a SQLite file', { timeout: deadlineMs }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tenure-processes-'));
    try {
      const counter = join(folder, 'counter');
      writeFileSync(counter, '0');
      const args = [script('sqlite-contender.mjs'), join(folder, 'leases.db'), counter, `${turns}`];
      const all = await Promise.all(Array.from({ length: processes }, () => run(process.execPath, args)));
      const tickets = all.map(({ stdout }) => (JSON.parse(stdout) as string[]).map(Number));
      assert.equal(readFileSync(counter, 'utf8'), `${processes * turns}`);
      assert.equal(new Set(tickets.flat()).size, processes * turns);
      for (const own of tickets) {
        assert.deepEqual(
          own,
          own.toSorted((one, other) => one - other),
        );
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test(
    'has a contract suite that node:test runs, and that fails on a broken backend',
    { timeout: deadlineMs },
    async () => {
      const args = ['--test', '--test-reporter=tap', script('conformance-runner.mjs')];
      const { stdout } = await run(process.execPath, args);
      assert.match(stdout, /^# fail 0$/m);
      assert.ok(Number(/^# pass (\d+)$/m.exec(stdout)?.[1]) > 35, stdout.slice(-500));
      const env = { ...process.env, BREAK_LISTS: 'yes' };
      const some = ['--test', '--test-name-pattern=tickets grow', ...args.slice(1)];
      await assert.rejects(run(process.execPath, some, { env }), (error: Error & { stdout?: string }) => {
        return /^ *not ok \d+ - tickets grow from entry to entry/m.test(error.stdout ?? '');
      });
    },
  );
});
