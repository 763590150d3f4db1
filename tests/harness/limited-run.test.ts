import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';

const module = new URL('../../scripts/limited-run.mjs', import.meta.url).href;

/** Runs `program`, which prints a process id and never ends, as a part whose limit is three times its share. */
async function partOf(shareSeconds: number, program: string): Promise<{ code: number | null; out: string }> {
  const part = { name: 'endless', shareSeconds, command: process.execPath, args: ['-e', program] };
  const run = `process.exitCode = await runLimited(${JSON.stringify(part)});`;
  const source = `import { runLimited } from '${module}'; ${run}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (out += text));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, out };
}

test('stops a part that takes three times its share, with its child processes, and reports it', async () => {
  const endless = 'setInterval(() => undefined, 1000)';
  const program = `console.log('pid', require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(
    endless,
  )}], { stdio: 'ignore' }).pid); ${endless}`;
  const { code, out } = await partOf(0.5, program);
  expect(code).toBe(124);
  expect(out).toContain('STOPPED  endless: it took 3 times its share of 0.5 s');
  const pid = /pid (\d+)/.exec(out)?.[1];
  await vi.waitFor(() => expect(isAlive(pid)).toBe(false), 20_000);
});

/** An ended process stays visible as a zombie until its new parent has collected its exit code. */
function isAlive(pid: string | undefined): boolean {
  const file = `/proc/${pid}/stat`;
  return existsSync(file) && !/\) Z /.test(readFileSync(file, 'utf8'));
}

test('returns the exit code of a part that ends in time', async () => {
  expect(await partOf(60, 'process.exit(3)')).toMatchObject({ code: 3 });
});
