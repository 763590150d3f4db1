import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { builtCommand as program, ChildProgram } from '@tenure/test-support';
import { afterEach, describe, expect, test } from 'vitest';

const startTimeoutMs = 60_000;

/**
 * The built command on this version of Node: the first steps of a new user, which CI repeats on every supported
 * version.
 */
describe('the tenure command', { timeout: 180_000 }, () => {
  const folders: string[] = [];
  const children: ChildProgram[] = [];

  afterEach(async () => {
    for (const child of children.splice(0)) await child.end('SIGKILL');
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  });

  test('serves, grants a lease, keeps its key over a restart, answers over HTTP, and exits with code 0', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tenure-smoke-'));
    folders.push(folder);
    const first = await serve(folder, children);
    expect(await tenure(first.endpoint, 'lease', 'grant', '600', '--id', 'a1')).toContain('a1');
    await tenure(first.endpoint, 'put', 'my/key', 'hello', '--lease', 'a1');
    expect(await tenure(first.endpoint, 'get', 'my/key')).toContain('hello');
    expect(await first.child.end()).toMatchObject({ code: 0, signal: null });

    const second = await serve(folder, children);
    expect(await tenure(second.endpoint, 'get', 'my/key')).toContain('hello');
    const health = await fetch(`http://${second.endpoint}/health`);
    expect(await health.json()).toMatchObject({ health: 'true' });
    const version = await fetch(`http://${second.endpoint}/version`);
    expect(await version.json()).toMatchObject({ etcdserver: '3.6.0' });
    await tenure(second.endpoint, 'lease', 'revoke', 'a1');
    expect(await tenure(second.endpoint, 'get', 'my/key')).not.toContain('hello');
    expect(await second.child.end()).toMatchObject({ code: 0, signal: null });
  });
});

/** Starts a server on a port that the system chooses and waits for the line that says it is ready. */
async function serve(folder: string, children: ChildProgram[]): Promise<{ endpoint: string; child: ChildProgram }> {
  const args = ['serve', '--engine', 'file', '--data-dir', folder, '--listen-client-urls', 'http://127.0.0.1:0'];
  const child = new ChildProgram({ program: process.execPath, args: [program, ...args] });
  children.push(child);
  const ready = /ready to serve client requests on http:\/\/([\d.:]+)/;
  const [, endpoint = ''] = await child.match(ready, startTimeoutMs);
  return { endpoint, child };
}

async function tenure(endpoint: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [program, '--endpoints', endpoint, ...args]);
  return stdout;
}
