import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { v3electionpb, v3lockpb } from '@tenure/protocol';
import { ChildProgram } from '@tenure/test-support';
import { describe, expect, test } from 'vitest';
import { GrpcClient } from '../conformance/client/grpc-client.ts';
import { serviceCalls } from '../conformance/client/service-calls.ts';
import { etcdVersion, startEtcd } from '../conformance/servers/etcd-server.ts';
import type { RunningServer } from '../conformance/servers/server-options.ts';
import { startTenure } from '../conformance/servers/tenure-server.ts';

/*
 * The real etcdctl against Tenure and, if it is installed, against etcd: one script and one expected output for both.
 * Revisions are absolute, so each script starts on an empty server.
 */

const env = { ...process.env, ETCDCTL_API: '3' };
const outputTimeoutMs = 20_000;

function hasEtcdctl(): boolean {
  try {
    execFileSync('etcdctl', ['version'], { env, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

interface Result {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** etcdctl, pointed at one server. */
class Etcdctl {
  readonly #endpoint: string;

  constructor(endpoint: string) {
    this.#endpoint = endpoint;
  }

  run(args: readonly string[], input = ''): Promise<Result> {
    return new Promise((resolve) => {
      const child = execFile('etcdctl', [`--endpoints=${this.#endpoint}`, ...args], { env }, (error, out, err) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, out, err });
      });
      // A command that exits without reading its input is not an error of the test.
      child.stdin?.on('error', () => undefined).end(input);
    });
  }

  /** The output of a successful command. */
  async out(...args: string[]): Promise<string> {
    const result = await this.run(args);
    expect(result, `etcdctl ${args.join(' ')}`).toMatchObject({ code: 0 });
    return result.out;
  }

  /** The last line of a failed command's output. */
  async failure(...args: string[]): Promise<string> {
    const { code, err } = await this.run(args);
    expect(code, `etcdctl ${args.join(' ')}`).toBeGreaterThan(0);
    return err.trimEnd().split('\n').at(-1) ?? '';
  }

  async txn(...lines: string[]): Promise<string> {
    const { code, out } = await this.run(['txn'], `${lines.join('\n')}\n\n`);
    expect(code).toBe(0);
    return out;
  }

  /** A command that runs until it is stopped. */
  start(...args: string[]): ChildProgram {
    return new ChildProgram({ program: 'etcdctl', args: [`--endpoints=${this.#endpoint}`, ...args], env });
  }
}

const lines = (...each: string[]): string => each.map((line) => `${line}\n`).join('');

type Story = (ctl: Etcdctl, server: RunningServer) => Promise<void>;

async function keys(ctl: Etcdctl): Promise<void> {
  expect(await ctl.out('put', 'a', '1')).toBe(lines('OK'));
  expect(await ctl.out('put', '--prev-kv', 'a', '2')).toBe(lines('OK', 'a', '1'));
  expect(await ctl.out('put', 'b', '3')).toBe(lines('OK'));
  expect(await ctl.out('put', 'c', '1')).toBe(lines('OK'));
  expect(await ctl.out('get', 'a')).toBe(lines('a', '2'));
  expect(await ctl.out('get', 'missing')).toBe('');
  expect(await ctl.out('get', 'a', 'c')).toBe(lines('a', '2', 'b', '3'));
  expect(await ctl.out('get', '--prefix', '')).toBe(lines('a', '2', 'b', '3', 'c', '1'));
  expect(await ctl.out('get', '--from-key', 'b')).toBe(lines('b', '3', 'c', '1'));
  const sorted = ['get', '--prefix', '', '--sort-by=VALUE', '--order=DESCEND'];
  expect(await ctl.out(...sorted, '--limit=2')).toBe(lines('b', '3', 'a', '2'));
  expect(await ctl.out('get', '--prefix', '', '--sort-by=CREATE', '--order=ASCEND', '--print-value-only')).toBe(
    lines('2', '3', '1'),
  );
  expect(await ctl.out('get', '--prefix', '', '--keys-only')).toBe(lines('a', '', 'b', '', 'c', ''));
  expect(await ctl.out('get', 'a', '--hex')).toBe(lines('\\x61', '\\x32'));
  expect(await ctl.out('get', 'a', '--consistency=s')).toBe(lines('a', '2'));
  expect(await ctl.out('get', 'a', '--rev=2')).toBe(lines('a', '1'));
  expect(await ctl.out('get', 'a', '--rev=1')).toBe('');
  expect(await ctl.failure('get', 'a', '--rev=99')).toBe(
    'Error: etcdserver: mvcc: required revision is a future revision',
  );
  const fields = await ctl.out('get', 'a', '-w=fields');
  expect(fields.split('\n').slice(2, 3)).toEqual(['"Revision" : 5']);
  expect(fields.split('\n').slice(4, -1)).toEqual([
    ...['"Key" : "a"', '"CreateRevision" : 2', '"ModRevision" : 3', '"Version" : 2', '"Value" : "2"', '"Lease" : 0'],
    ...['"More" : false', '"Count" : 1'],
  ]);
  expect(await ctl.out('del', '--prev-kv', 'a')).toBe(lines('1', 'a', '2'));
  expect(await ctl.out('del', 'nothing')).toBe(lines('0'));
  expect(await ctl.out('del', '--prefix', '')).toBe(lines('2'));
}

async function transactions(ctl: Etcdctl): Promise<void> {
  await ctl.out('put', 'a', '2');
  expect(await ctl.txn('value("a") = "2"', '', 'put a 3', 'get a', '', 'put a 4')).toBe(
    lines('SUCCESS', '', 'OK', '', 'a', '3'),
  );
  expect(await ctl.txn('value("a") = "2"', '', 'put a 3', '', 'put a 4', 'del b')).toBe(
    lines('FAILURE', '', 'OK', '', '0'),
  );
  expect(await ctl.txn('version("a") > "2"', 'create("b") = "0"', '', 'put b 1', '', '')).toBe(
    lines('SUCCESS', '', 'OK'),
  );
  expect(await ctl.txn('mod("b") < "2"', '', '', 'get a b')).toBe(lines('FAILURE', '', 'a', '4'));
}

async function watches(ctl: Etcdctl): Promise<void> {
  const watch = ctl.start('watch', '--prefix', 'k', '--prev-kv');
  try {
    // The watch has started when it reports an event: puts continue until then.
    while (!watch.out.includes('PUT\nk0\n')) await ctl.out('put', 'k0', '0');
    await ctl.out('put', 'k1', 'one');
    await ctl.out('put', 'k1', 'two');
    await ctl.out('del', 'k1');
    await watch.match(/PUT\n(k1\none\n)PUT\nk1\none\nk1\ntwo\nDELETE\nk1\ntwo\nk1\n\n/, outputTimeoutMs);
  } finally {
    await watch.end();
  }
  const past = ctl.start('watch', '--rev=2', '--prefix', 'k');
  try {
    await past.match(/^PUT\nk0\n0\n(PUT\nk0\n0\n)*PUT\nk1\none\nPUT\nk1\ntwo\nDELETE\nk1\n\n$/, outputTimeoutMs);
  } finally {
    await past.end();
  }
}

async function leases(ctl: Etcdctl): Promise<void> {
  const granted = await ctl.out('lease', 'grant', '60');
  const id = /^lease ([0-9a-f]{1,16}) granted with TTL\(60s\)\n$/.exec(granted)?.[1] ?? '';
  expect(id).not.toBe('');
  expect(await ctl.out('put', `--lease=${id}`, 'leased', 'v')).toBe(lines('OK'));
  expect(await ctl.out('lease', 'timetolive', id, '--keys')).toMatch(
    new RegExp(`^lease ${id} granted with TTL\\(60s\\), remaining\\((5\\d|60)s\\), attached keys\\(\\[leased\\]\\)\n$`),
  );
  expect(await ctl.out('lease', 'keep-alive', '--once', id)).toBe(lines(`lease ${id} keepalived with TTL(60)`));
  expect(await ctl.out('lease', 'list')).toBe(lines('found 1 leases', id));
  expect(await ctl.out('lease', 'revoke', id)).toBe(lines(`lease ${id} revoked`));
  expect(await ctl.out('get', 'leased')).toBe('');
  expect(await ctl.out('lease', 'list')).toBe(lines('found 0 leases'));
  expect(await ctl.out('lease', 'timetolive', id)).toBe(lines(`lease ${id} already expired`));
  const notFound = 'etcdserver: requested lease not found';
  expect(await ctl.failure('lease', 'revoke', id)).toBe(`Error: failed to revoke lease (${notFound})`);
  expect(await ctl.failure('lease', 'keep-alive', '--once', id)).toBe(`Error: ${notFound}`);
  expect(await ctl.failure('put', `--lease=${id}`, 'leased', 'v')).toBe(`Error: ${notFound}`);
}

async function renewal(ctl: Etcdctl): Promise<void> {
  const id = (await ctl.out('lease', 'grant', '3')).split(' ')[1] ?? '';
  const keepAlive = ctl.start('lease', 'keep-alive', id);
  try {
    await keepAlive.match(new RegExp(`^(lease ${id} keepalived with TTL\\(3\\)\n){4}`), outputTimeoutMs);
    await ctl.out('lease', 'revoke', id);
    await keepAlive.match(new RegExp(`lease ${id} expired or revoked.`), outputTimeoutMs);
  } finally {
    await keepAlive.end();
  }
}

async function expiry(ctl: Etcdctl): Promise<void> {
  const watch = ctl.start('watch', '--rev=1', 'leased');
  try {
    const id = (await ctl.out('lease', 'grant', '1')).split(' ')[1] ?? '';
    await ctl.out('put', `--lease=${id}`, 'leased', 'v');
    await watch.match(/^PUT\nleased\nv\nDELETE\nleased\n\n$/, outputTimeoutMs);
    expect(await ctl.out('lease', 'timetolive', id)).toBe(lines(`lease ${id} already expired`));
  } finally {
    await watch.end();
  }
}

/** Takes its locks with transactions: it and callers of the Lock service wait for each other. */
async function locks(ctl: Etcdctl, { address }: RunningServer): Promise<void> {
  const client = new GrpcClient(address);
  const service = serviceCalls(client, v3lockpb.Lock);
  const name = Buffer.from('n');
  const first = ctl.start('lock', 'n');
  let second: ChildProgram | undefined;
  try {
    await first.match(/^n\/[0-9a-f]+\n/, outputTimeoutMs);
    const waiter = service.lock({ name });
    const queued = ['get', '--prefix', 'n/', '--keys-only', '-w=json'];
    const untilQueued = async (count: number): Promise<void> => {
      while (JSON.parse(await ctl.out(...queued)).count !== count);
    };
    await untilQueued(2);
    await first.end('SIGINT');
    const { key } = await waiter;
    second = ctl.start('lock', 'n');
    await untilQueued(2);
    expect(second.out).toBe('');
    await service.unlock({ key: Uint8Array.from(key) });
    await second.match(/^n\/[0-9a-f]+\n/, outputTimeoutMs);
  } finally {
    await Promise.all([first.end(), second?.end()]);
    client.close();
  }
}

async function elections(ctl: Etcdctl, { address }: RunningServer): Promise<void> {
  const client = new GrpcClient(address);
  const service = serviceCalls(client, v3electionpb.Election);
  const observer = ctl.start('elect', '--listen', 'e');
  const candidate = ctl.start('elect', 'e', 'of the tool');
  try {
    await candidate.match(/^e\/[0-9a-f]+\nof the tool\n$/, outputTimeoutMs);
    const campaign = service.campaign({ name: Buffer.from('e'), value: Buffer.from('of the service') });
    await observer.match(/of the tool\n$/, outputTimeoutMs);
    await candidate.end('SIGINT');
    const { leader } = await campaign;
    await observer.match(
      new RegExp(`${Buffer.from(leader?.key ?? []).toString()}\nof the service\n$`),
      outputTimeoutMs,
    );
  } finally {
    await Promise.all([observer.end(), candidate.end()]);
    client.close();
  }
}

async function compaction(ctl: Etcdctl): Promise<void> {
  for (const value of ['1', '2', '3']) await ctl.out('put', 'a', value);
  expect(await ctl.out('compaction', '3')).toBe(lines('compacted revision 3'));
  expect(await ctl.out('compaction', '--physical', '4')).toBe(lines('compacted revision 4'));
  const compacted = 'Error: etcdserver: mvcc: required revision has been compacted';
  expect(await ctl.failure('compaction', '3')).toBe(compacted);
  expect(await ctl.failure('compaction', '9')).toBe('Error: etcdserver: mvcc: required revision is a future revision');
  expect(await ctl.failure('get', 'a', '--rev=3')).toBe(compacted);
  expect(await ctl.out('get', 'a', '--rev=4')).toBe(lines('a', '3'));
  const { code, err, out } = await ctl.run(['watch', '--rev=2', 'a']);
  expect({ code, said: `${out}${err}` }).toMatchObject({
    code: 5,
    said: expect.stringContaining('watch was canceled (etcdserver: mvcc: required revision has been compacted)'),
  });
}

async function maintenance(ctl: Etcdctl, { address, name, advertisedClientUrl }: RunningServer): Promise<void> {
  await ctl.out('put', 'a', '1');
  expect(await ctl.out('endpoint', 'status')).toMatch(
    new RegExp(`^${address}, [0-9a-f]+, 3\\.\\d+\\.\\d+, [\\d.]+ [kM]?B, true, false, \\d+, \\d+, \\d+, \n$`),
  );
  const [status] = JSON.parse(await ctl.out('endpoint', 'status', '-w=json'));
  expect(status.Status.header.revision).toBe(2);
  expect(status.Status.leader).toBe(status.Status.header.member_id);
  const { out, err } = await ctl.run(['endpoint', 'health']);
  expect(`${out}${err}`).toMatch(new RegExp(`${address} is healthy: successfully committed proposal: took = `));
  const hash = await ctl.out('endpoint', 'hashkv');
  expect(hash).toMatch(new RegExp(`^${address}, \\d+\n$`));
  expect(await ctl.out('member', 'list')).toMatch(
    new RegExp(`^[0-9a-f]+, started, ${name}, [^ ,]*, ${advertisedClientUrl}, false\n$`),
  );
  expect(await ctl.out('alarm', 'list')).toBe('');
  expect(await ctl.out('alarm', 'disarm')).toBe('');
  expect(await ctl.out('defrag')).toBe(lines(`Finished defragmenting etcd member[${address}]`));
  expect(await ctl.out('endpoint', 'hashkv', '--rev=2')).toBe(hash);
}

async function snapshot(ctl: Etcdctl): Promise<void> {
  const hashBytes = 32;
  const dir = await mkdtemp(join(tmpdir(), 'etcdctl-snapshot-'));
  try {
    await ctl.out('put', 'a', 'v'.repeat(100_000));
    const file = join(dir, 'saved.db');
    expect(await ctl.out('snapshot', 'save', file)).toBe(lines(`Snapshot saved at ${file}`));
    const saved = await readFile(file);
    expect(saved.length).toBeGreaterThan(100_000);
    const hash = createHash('sha256').update(saved.subarray(0, -hashBytes)).digest();
    expect(saved.subarray(-hashBytes).equals(hash)).toBe(true);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

const stories: readonly (readonly [string, Story])[] = [
  ['puts, gets and deletes', keys],
  ['runs transactions from its input', transactions],
  ['watches', watches],
  ['grants, shows, renews and revokes leases', leases],
  ['keeps a lease alive until it is revoked', renewal],
  ['sees a lease expire', expiry],
  ['locks in one queue with callers of the Lock service', locks],
  ['elects in one queue with callers of the Election service', elections],
  ['compacts', compaction],
  ['asks for status, health, hashes, members and alarms', maintenance],
  ['saves a snapshot', snapshot],
];

const starts = { tenure: startTenure, ...(etcdVersion() === undefined ? {} : { etcd: startEtcd }) };

if (hasEtcdctl()) {
  describe.each(Object.entries(starts))('etcdctl on %s', (_kind, start) => {
    // Each script starts at the first revision, so it has a server of its own. The scripts mostly wait for processes
    // and leases.
    test.concurrent.each(stories)('%s', async (_name, tell) => {
      const server = await start();
      try {
        await tell(new Etcdctl(server.address), server);
      } finally {
        await server.stop();
      }
    });
  });
} else {
  describe('etcdctl', () => {
    test('needs the program etcdctl (Debian package etcd-client)', ({ skip }) => {
      expect(process.env['CI'], 'CI must have etcdctl').toBeUndefined();
      skip('etcdctl is not installed');
    });
  });
}
