import { mkdir, readFile, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ServeProcess } from '@tenure/test-support';
import { afterAll, describe, expect, test } from 'vitest';
import { runCommand } from './running-command.ts';
import { ServeSandbox } from './serve-sandbox.ts';

const anyPort = ['--listen-client-urls', 'http://127.0.0.1:0'];

const sandbox = new ServeSandbox();
const { root } = sandbox;
const newFolder = (): string => sandbox.newFolder();
const serve = (args: readonly string[]): ServeProcess => sandbox.serve(args);

afterAll(() => sandbox.remove());

const limits = { timeout: 120_000 };

describe.concurrent('a snapshot', limits, () => {
  test('is saved, inspected and restored into a new folder, with its leases', async () => {
    const server = serve(['--data-dir', newFolder(), ...anyPort]);
    const client = await sandbox.clientOf(server);
    await client('lease', 'grant', '600', '--id', 'a1', '--label', 'kept');
    await client('put', 'a', '1', '--lease', 'a1');
    await client('put', 'b', 'x'.repeat(100_000));
    const file = join(root, 'saved.snapshot');
    expect((await client('snapshot', 'save', file)).out).toBe(`Snapshot saved at ${file}\n`);
    await client('put', 'after', 'the snapshot');
    const { size, mode } = await stat(file);
    expect({ past: size % 512, mode: mode & 0o777 }).toEqual({ past: 32, mode: 0o600 });

    const status = JSON.parse((await runCommand(['snapshot', 'status', file, '-w', 'json'])).out) as object;
    expect(status).toMatchObject({ revision: 3, keys: 2, leases: 1, sizeBytes: size });

    const restored = newFolder();
    const restore = await runCommand(['snapshot', 'restore', file, '--data-dir', restored]);
    expect(restore).toMatchObject({
      code: 0,
      out: expect.stringContaining('restored revision 3 with 2 keys and 1 leases'),
    });
    const copy = await sandbox.clientOf(serve(['--data-dir', restored, ...anyPort]));
    expect((await copy('get', '', '--prefix', '--keys-only')).out).toBe('a\n\nb\n\n');
    expect((await copy('lease', 'timetolive', 'a1', '--keys')).out).toMatch(/label\(kept\), attached keys\(\[a]\)/);
    expect((await copy('put', 'c', 'd')).out).toBe('OK\n');
  });

  test('that is a folder is refused with its name', async () => {
    const folder = join(root, 'no-file');
    await mkdir(folder);
    for (const command of [
      ['status', folder],
      ['restore', folder, '--data-dir', newFolder()],
    ]) {
      const { code, err } = await runCommand(['snapshot', ...command]);
      expect({ code, err }).toEqual({ code: 1, err: `Error: ${folder}: it is a folder, and no snapshot\n` });
    }
  });

  test('that is damaged is refused and leaves no files behind', async () => {
    const client = await sandbox.clientOf(serve(['--engine', 'memory', ...anyPort]));
    await client('put', 'a', 'x'.repeat(10_000));
    const file = join(root, 'whole.snapshot');
    await client('snapshot', 'save', file);
    const bytes = await readFile(file);
    const changed = Buffer.from(bytes);
    changed[5000] = (changed[5000] ?? 0) ^ 1;
    const cases = { changed, short: bytes.subarray(0, 600), empty: Buffer.alloc(0), foreign: Buffer.alloc(2080, 'x') };
    for (const [name, content] of Object.entries(cases)) {
      const path = join(root, `${name}.snapshot`);
      await writeFile(path, content);
      const folder = newFolder();
      expect(await runCommand(['snapshot', 'status', path])).toMatchObject({ code: 1, out: '' });
      const restore = await runCommand(['snapshot', 'restore', path, '--data-dir', folder]);
      expect(restore).toMatchObject({ code: 1, out: '' });
      expect(restore.err).toMatch(new RegExp(`^Error: ${path}: [^\n]*\n$`));
      await expect(stat(folder)).rejects.toThrow('ENOENT');
    }
  });

  test('is not restored into a folder in use', async () => {
    const folder = newFolder();
    const server = serve(['--data-dir', folder, ...anyPort]);
    const client = await sandbox.clientOf(server);
    const file = join(root, 'in-use.snapshot');
    await client('snapshot', 'save', file);
    expect((await runCommand(['snapshot', 'restore', file, '--data-dir', folder])).code).toBe(1);
    await server.end();
    const { code, err } = await runCommand(['snapshot', 'restore', file, '--data-dir', folder]);
    expect(code).toBe(1);
    expect(err).toContain('holds a log already');
  });
});

describe.concurrent('a damaged log', limits, () => {
  /** Writes 20 keys, stops the server and changes one byte in the middle of the only file of the log. */
  async function damagedFolder(): Promise<string> {
    const folder = newFolder();
    const server = serve(['--data-dir', folder, ...anyPort]);
    const client = await sandbox.clientOf(server);
    for (let key = 0; key < 20; key += 1) await client('put', `key-${key}`, 'value');
    await server.end();
    const file = join(folder, 'log-0000000000000001.segment');
    const bytes = await readFile(file);
    const at = bytes.indexOf('key-10');
    bytes[at] = 0x4b;
    await writeFile(file, bytes);
    return folder;
  }

  test('is refused with the position and the repair commands, which work', async () => {
    const folder = await damagedFolder();
    const { code, out, err } = await serve(['--data-dir', folder, ...anyPort]).ended;
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(/^Error: \S+log-0000000000000001\.segment is damaged at offset \d+: [^\n]*\n$/);
    expect(err).toContain(`tenure log verify --data-dir ${folder}`);
    const advice = /tenure (log truncate --data-dir \S+ --after (\d+))/.exec(err);

    const verify = await runCommand(['log', 'verify', '--data-dir', folder]);
    expect(verify.code).toBe(1);
    expect(verify.out).toContain('DAMAGED: ');
    expect(verify.out).toContain(`tenure ${advice?.[1]}`);

    const dump = await runCommand(['log', 'dump', '--data-dir', folder]);
    expect(dump.code).toBe(1);
    expect(dump.out).toMatch(/^1 epoch 0 at 0 ms: createCluster /);
    expect(dump.out.split('\n').at(-2)).toMatch(new RegExp(`^${advice?.[2]} .*put "key-9" \\(5 bytes\\)$`));

    const cut = await runCommand(advice?.[1]?.split(' ') ?? []);
    expect(cut).toMatchObject({ code: 0, out: expect.stringContaining(`behind entry ${advice?.[2]} now`) });
    expect((await runCommand(['log', 'verify', '--data-dir', folder])).code).toBe(0);
    const client = await sandbox.clientOf(serve(['--data-dir', folder, ...anyPort]));
    expect((await client('get', 'key-', '--prefix', '--count-only')).out).toBe('10\n');
    expect((await client('put', 'key-10', 'again')).out).toBe('OK\n');
  });

  test('at its end is an append that was never acknowledged: it is truncated and reported', async () => {
    const folder = newFolder();
    const first = serve(['--data-dir', folder, ...anyPort]);
    const client = await sandbox.clientOf(first);
    await client('put', 'a', '1');
    await client('put', 'b', 'x'.repeat(3000));
    await first.end('SIGKILL');
    const file = join(folder, 'log-0000000000000001.segment');
    const bytes = await readFile(file);
    await truncate(file, bytes.lastIndexOf('xxx'));
    const verify = await runCommand(['log', 'verify', '--data-dir', folder]);
    expect(verify).toMatchObject({ code: 0, out: expect.stringContaining('unfinished append') });
    const second = serve(['--data-dir', folder, ...anyPort]);
    const after = await sandbox.clientOf(second);
    expect((await after('get', '', '--prefix', '--keys-only')).out).toBe('a\n\n');
    expect(second.err).toContain('cut off');
  });

  test('is not changed by commands while a server runs on it', async () => {
    const folder = newFolder();
    const client = await sandbox.clientOf(serve(['--data-dir', folder, ...anyPort]));
    await client('put', 'a', '1');
    const verify = await runCommand(['log', 'verify', '--data-dir', folder]);
    expect(verify).toMatchObject({ code: 0, out: expect.stringContaining('a server is running on it') });
    expect((await runCommand(['log', 'truncate', '--data-dir', folder, '--after', '1'])).code).toBe(1);
    expect((await client('get', 'a')).out).toBe('a\n1\n');
  });
});
