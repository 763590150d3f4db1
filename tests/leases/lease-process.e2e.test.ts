import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, test } from 'vitest';

const dist = fileURLToPath(new URL('../../packages/client/dist/', import.meta.url));

interface Ended {
  readonly lines: readonly string[];
  readonly errors: string;
  readonly code: number | null;
  readonly signal: string | null;
}

/** Runs a program that has a manager called `leases`, and sends it a SIGTERM when it says that it is ready. */
async function run(program: string, options = ''): Promise<Ended> {
  const source = `
    import { createLeaseManager } from ${JSON.stringify(`${dist}index.js`)};
    import { memoryBackend } from ${JSON.stringify(`${dist}memory/index.js`)};
    const leases = createLeaseManager({ backend: memoryBackend(), ttlMs: 30_000, ${options} });
    leases.addListener({ beforeRelease: (hold) => console.log('release', hold.name) });
    ${program}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    if (!output.includes('ready') && (output + chunk).includes('ready')) child.kill('SIGTERM');
    output += chunk;
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (errors += chunk));
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  return { lines: output.trim().split('\n'), errors, code, signal };
}

const stayUp = 'setInterval(() => {}, 1_000);';

describe('a process with leases', () => {
  test('releases on SIGTERM when asked to, after the work has stopped, and ends by the signal', async () => {
    const ended = await run(
      `${stayUp}
      await leases.acquire('plain');
      void leases.withLease('worked', {}, async (hold) => {
        console.log('ready');
        await new Promise((resolve) => hold.signal.addEventListener('abort', resolve));
        console.log('stopping');
        await new Promise((resolve) => setTimeout(resolve, 50));
        console.log('stopped');
      });`,
      'releaseOnSigterm: true',
    );
    assert.deepEqual([ended.code, ended.signal, ended.errors], [null, 'SIGTERM', '']);
    assert.deepEqual(ended.lines.slice(0, 3), ['ready', 'stopping', 'stopped']);
    assert.deepEqual(ended.lines.slice(3).toSorted(), ['release plain', 'release worked']);
  });

  test('leaves the ending to a program that listens for SIGTERM itself', async () => {
    const ended = await run(
      `process.on('SIGTERM', async () => {
        await leases[Symbol.asyncDispose]();
        console.log('own end');
        process.exit(7);
      });
      ${stayUp}
      await leases.acquire('plain');
      console.log('ready');`,
      'releaseOnSigterm: true',
    );
    assert.deepEqual([ended.code, ended.signal, ended.errors], [7, null, '']);
    assert.deepEqual(ended.lines, ['ready', 'release plain', 'own end']);
  });

  test('is not touched by SIGTERM unless asked to', async () => {
    const ended = await run(`${stayUp} await leases.acquire('plain'); console.log('ready');`);
    assert.deepEqual([ended.code, ended.signal, ended.lines.length], [null, 'SIGTERM', 1]);
  });

  test('is kept alive by no hold, no wait, no watch and no membership, and says nothing', async () => {
    const ended = await run(
      `await leases.acquire('held');
      void leases.acquire('held').catch(() => {});
      void leases.election('main').run(() => new Promise(() => {})).catch(() => {});
      const membership = await leases.membership('group');
      void (async () => { for await (const info of leases.watch('held')) void info; })();
      void (async () => { for await (const changes of membership.watch()) void changes; })();
      console.log('end');`,
      'releaseOnSigterm: true',
    );
    assert.deepEqual([ended.code, ended.signal, ended.errors, ended.lines], [0, null, '', ['end']]);
  });
});
