import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';

const run = promisify(execFile);
const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const processes = 4;
const turns = 25;
const deadlineMs = 120_000;

/** The built packages, in separate processes. */
describe('tenure as it is published', () => {
  test('excludes processes by a SQLite file', { timeout: deadlineMs }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tenure-processes-'));
    try {
      const counter = join(folder, 'counter');
      writeFileSync(counter, '0');
      const args = [script('sqlite-contender.mjs'), join(folder, 'leases.db'), counter, `${turns}`];
      const all = await Promise.all(Array.from({ length: processes }, () => run(process.execPath, args)));
      const sequences = all.map(({ stdout }) => (JSON.parse(stdout) as string[]).map(Number));
      expect(readFileSync(counter, 'utf8')).toBe(`${processes * turns}`);
      expect(new Set(sequences.flat()).size).toBe(processes * turns);
      for (const own of sequences) {
        expect(own).toStrictEqual(own.toSorted((one, other) => one - other));
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
      expect(stdout).toMatch(/^# fail 0$/m);
      expect(Number(/^# pass (\d+)$/m.exec(stdout)?.[1]), stdout.slice(-500)).toBeGreaterThan(35);
      const env = { ...process.env, BREAK_LISTS: 'yes' };
      const some = ['--test', '--test-name-pattern=sequence numbers grow', ...args.slice(1)];
      await expect(run(process.execPath, some, { env })).rejects.toMatchObject({
        stdout: expect.stringMatching(/^ *not ok \d+ - sequence numbers grow from entry to entry/m),
      });
    },
  );
});
