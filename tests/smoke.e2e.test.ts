import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';

const program = join(import.meta.dirname, '../packages/cli/bin/tenure.js');
const startTimeoutMs = 60_000;

/**
 * The built command on this Node: what a newcomer does first, and what CI repeats on every version that is supported.
 */
describe('the tenure command', { timeout: 180_000 }, () => {
  const folders: string[] = [];
  const children: ChildProcess[] = [];

  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  });

  it('serves, gives a lease, keeps its key over a restart, answers over HTTP as well, and stops in order', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tenure-smoke-'));
    folders.push(folder);
    const first = await serve(folder, children);
    expect(await tenure(first.endpoint, 'lease', 'grant', '600', '--id', 'a1')).toContain('a1');
    await tenure(first.endpoint, 'put', 'my/key', 'hello', '--lease', 'a1');
    expect(await tenure(first.endpoint, 'get', 'my/key')).toContain('hello');
    expect(await stop(first.child)).toEqual({ code: 0, signal: null });

    const second = await serve(folder, children);
    expect(await tenure(second.endpoint, 'get', 'my/key')).toContain('hello');
    const health = await fetch(`http://${second.endpoint}/health`);
    expect(await health.json()).toMatchObject({ health: 'true' });
    const version = await fetch(`http://${second.endpoint}/version`);
    expect(await version.json()).toMatchObject({ etcdserver: '3.6.0' });
    await tenure(second.endpoint, 'lease', 'revoke', 'a1');
    expect(await tenure(second.endpoint, 'get', 'my/key')).not.toContain('hello');
    expect(await stop(second.child)).toEqual({ code: 0, signal: null });
  });
});

/** Starts a server on a free port and waits for the line that says it is ready. */
async function serve(folder: string, children: ChildProcess[]): Promise<{ endpoint: string; child: ChildProcess }> {
  const args = ['serve', '--engine', 'file', '--data-dir', folder, '--listen-client-urls', 'http://127.0.0.1:0'];
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  let errors = '';
  child.stderr.on('data', (text: Buffer) => (errors += text.toString()));
  const endpoint = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`not ready in ${startTimeoutMs} ms: ${errors}`)), startTimeoutMs);
    createInterface({ input: child.stdout }).on('line', (line) => {
      const found = /ready to serve client requests on http:\/\/([\d.:]+)/.exec(line)?.[1];
      if (found === undefined) return;
      clearTimeout(timer);
      resolve(found);
    });
    child.once('exit', (code) => reject(new Error(`the server ended with code ${code}: ${errors}`)));
  });
  return { endpoint, child };
}

async function tenure(endpoint: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [program, '--endpoints', endpoint, ...args]);
  return stdout;
}

function stop(child: ChildProcess): Promise<{ code: number | null; signal: string | null }> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
    child.kill('SIGTERM');
  });
}
