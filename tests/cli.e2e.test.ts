import { ServeProcess } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { etcdVersion, startEtcd } from '../conformance/servers/etcd-server.ts';
import type { RunningServer } from '../conformance/servers/server-options.ts';
import { startTenure } from '../conformance/servers/tenure-server.ts';
import { type CommandResult, runCommand, RunningCommand } from './running-command.ts';

function describeClient(kind: 'etcd' | 'tenure', start: () => Promise<RunningServer>): void {
  describe(`the client against ${kind}`, () => {
    let server: RunningServer;
    let endpoints: string[];
    beforeAll(async () => {
      server = await start();
      endpoints = ['--endpoints', server.address];
    });
    afterAll(() => server.stop());

    const tenure = (...argv: string[]): Promise<CommandResult> => runCommand([...argv, ...endpoints]);
    const lines = async (...argv: string[]): Promise<string[]> => {
      const { code, out, err } = await tenure(...argv);
      if (code !== 0) throw new Error(`exit ${code}: ${err}`);
      return out.split('\n').slice(0, -1);
    };

    test('put, get and del a key', async () => {
      expect(await lines('put', 'kv/a', '1')).toEqual(['OK']);
      expect(await lines('put', 'kv/a', '2', '--prev-kv')).toEqual(['OK', 'kv/a', '1']);
      expect(await lines('get', 'kv/a')).toEqual(['kv/a', '2']);
      expect(await lines('del', 'kv/a', '--prev-kv')).toEqual(['1', 'kv/a', '2']);
      expect(await lines('get', 'kv/a')).toEqual([]);
      expect(await lines('del', 'kv/a')).toEqual(['0']);
    });

    test('without an argument the value is read from stdin, byte for byte', async () => {
      const put = await runCommand(['put', 'stdin', ...endpoints], { stdin: 'two\nlines\n' });
      expect(put).toEqual({ code: 0, out: 'OK\n', err: '' });
      expect((await tenure('get', 'stdin', '--print-value-only')).out).toBe('two\nlines\n\n');
    });

    test('get supports ranges, orders and revisions', async () => {
      for (const [key, value] of [
        ['r/1', 'z'],
        ['r/2', 'y'],
        ['r/3', 'x'],
      ] as const)
        await tenure('put', key, value);
      expect(await lines('get', 'r/', '--prefix', '--print-value-only')).toEqual(['z', 'y', 'x']);
      expect(await lines('get', 'r/1', 'r/3', '--keys-only')).toEqual(['r/1', '', 'r/2', '']);
      expect(await lines('get', 'r/', '--prefix', '--count-only')).toEqual(['3']);
      expect(await lines('get', 'r/', '--prefix', '--limit', '1')).toEqual(['r/1', 'z']);
      expect(await lines('get', 'r/', '--prefix', '--sort-by', 'value', '--print-value-only')).toEqual(['x', 'y', 'z']);
      expect(await lines('get', 'r/', '--prefix', '--order', 'descend', '--print-value-only')).toEqual(['x', 'y', 'z']);
      expect(await lines('get', 'r/2', '--from-key', '--limit', '1', '--serializable')).toEqual(['r/2', 'y']);
      const { header } = JSON.parse((await lines('get', 'r/1', '-w', 'json'))[0] ?? '') as {
        header: { revision: number };
      };
      await tenure('put', 'r/1', 'later');
      expect(await lines('get', 'r/1', '--rev', String(header.revision))).toEqual(['r/1', 'z']);
      expect(await lines('del', 'r/', '--prefix')).toEqual(['3']);
    });

    test('the lease commands work from grant to revoke, with ids in hex', async () => {
      expect(await lines('lease', 'grant', '60', '--id', 'a1')).toEqual([
        'lease 00000000000000a1 granted with TTL(60s)',
      ]);
      expect(await lines('put', 'leased', 'v', '--lease', 'a1')).toEqual(['OK']);
      expect(await lines('lease', 'list')).toEqual(expect.arrayContaining(['00000000000000a1']));
      const [left] = await lines('lease', 'timetolive', 'a1', '--keys');
      expect(left).toMatch(
        /^lease 00000000000000a1 granted with TTL\(60s\), remaining\((59|60|59\d{3}m)s\), attached keys\(\[leased]\)$/,
      );
      expect(await lines('lease', 'keep-alive', 'a1', '--once')).toEqual([
        'lease 00000000000000a1 keepalived with TTL(60)',
      ]);
      expect(await lines('lease', 'revoke', 'a1')).toEqual(['lease 00000000000000a1 revoked']);
      expect(await lines('get', 'leased')).toEqual([]);
      expect(await lines('lease', 'timetolive', 'a1')).toEqual(['lease 00000000000000a1 already expired']);
    });

    test('keep-alive renews until the lease is gone', async () => {
      await tenure('lease', 'grant', '2', '--id', 'b2');
      const keepAlive = new RunningCommand(['lease', 'keep-alive', 'b2', ...endpoints]);
      const renewal = 'lease 00000000000000b2 keepalived with TTL(2)\n';
      await keepAlive.output(renewal.repeat(4));
      expect((await lines('lease', 'timetolive', 'b2'))[0]).toContain('remaining(');
      await tenure('lease', 'revoke', 'b2');
      const { code, err } = await keepAlive.done;
      expect(code).toBe(1);
      expect(err).toBe('Error: lease 00000000000000b2 expired or revoked.\n');
    });

    test('watch shows changes as they happen, also from a past revision', async () => {
      const { header } = JSON.parse((await lines('put', 'w/a', '1', '-w', 'json'))[0] ?? '') as {
        header: { revision: number };
      };
      const args = ['watch', 'w/', '--prefix', '--prev-kv', '--rev', String(header.revision), ...endpoints];
      const watch = new RunningCommand(args);
      await watch.output('PUT\nw/a\n1\n');
      await tenure('put', 'w/a', '2');
      await watch.output('PUT\nw/a\n1\nPUT\nw/a\n1\nw/a\n2\n');
      await tenure('del', 'w/a');
      expect(await watch.output('DELETE\nw/a\n2\nw/a\n\n')).toContain('DELETE');
      // A watch has no end of its own: the test ends it by stopping the server.
      watch.done.catch(() => undefined);
    });

    test('an error of the server is one line with its text, and exit code 1', async () => {
      const refused = (text: string) => ({ code: 1, out: '', err: `Error: ${text}\n` });
      const leaseGone = refused('etcdserver: requested lease not found');
      expect(await tenure('put', 'k', 'v', '--lease', 'dead')).toEqual(leaseGone);
      expect(await tenure('lease', 'revoke', 'dead')).toEqual(leaseGone);
      expect(await tenure('get', 'k', '--rev', '999999')).toEqual(
        refused('etcdserver: mvcc: required revision is a future revision'),
      );
      expect(await tenure('put', '', 'v')).toEqual(refused('etcdserver: key is not provided'));
    });

    test('json is the reply as sent by the server', async () => {
      const [grant] = await lines('lease', 'grant', '60', '--id', '7fffffffffffffff', '-w', 'json');
      expect(grant).toMatch(/^\{"header":\{"cluster_id":\d+,.*"ID":9223372036854775807,"TTL":60/);
      const [list] = await lines('lease', 'list', '-w', 'json');
      expect(list).toContain('"ID":9223372036854775807');
      await tenure('lease', 'revoke', '7fffffffffffffff');
    });

    test('a TTL may be in milliseconds, if the server supports it', async () => {
      const { out, err } = await tenure('lease', 'grant', '1500ms', '--id', 'c3');
      if (kind === 'tenure') {
        expect({ out, err }).toEqual({ out: 'lease 00000000000000c3 granted with TTL(1500ms)\n', err: '' });
        const [label] = await lines('lease', 'grant', '60', '--id', 'c4', '--label', 'worker 7');
        expect(label).toBe('lease 00000000000000c4 granted with TTL(60s)');
        expect((await lines('lease', 'timetolive', 'c4'))[0]).toContain(', label(worker 7)');
      } else {
        expect(err).toBe('the server granted 2s instead of 1500ms\n');
        expect(out).toBe('lease 00000000000000c3 granted with TTL(2s)\n');
      }
    });

    test('endpoints are tried in order, and may come from the environment', async () => {
      const env = { TENURE_ENDPOINTS: `127.0.0.1:1,${server.address}` };
      expect((await runCommand(['put', 'env', 'v'], { env })).out).toBe('OK\n');
    });
  });
}

const version = etcdVersion();
if (version === undefined) {
  test('the client against etcd needs the program etcd (Debian package etcd-server)', ({ skip }) => {
    expect(process.env['CI'], 'CI must have etcd').toBeUndefined();
    skip('etcd is not installed');
  });
} else {
  describeClient('etcd', startEtcd);
}
describeClient('tenure', startTenure);

describe('without a server', () => {
  test('the message says how to start one', async () => {
    const { code, err } = await runCommand(['get', 'a', '--endpoints', '127.0.0.1:1']);
    expect(code).toBe(3);
    expect(err).toBe('Error: no server at 127.0.0.1:1; start one with: tenure serve\n');
  });

  test('the message names every endpoint that was tried', async () => {
    const { err } = await runCommand(['get', 'a', '--endpoints', '127.0.0.1:1,127.0.0.1:2']);
    expect(err).toContain('127.0.0.1:1;');
    expect(err).toContain('127.0.0.1:2;');
  });

  test.each([
    ['get'],
    ['frob'],
    ['lease', 'frob'],
    ['get', 'a', '--frob'],
    ['get', 'a', 'b', 'c'],
    ['get', 'a', 'b', '--prefix'],
    ['get', 'a', '--limit', 'many'],
    ['get', 'a', '--sort-by', 'size'],
    ['get', 'a', '-w', 'xml'],
    ['get', 'a', '--command-timeout', 'soon'],
    ['get', 'a', '--endpoints', 'unix:/s'],
    ['get', 'a', '--endpoints', 'a:70000'],
    ['get', 'a', '--cert', 'file'],
    ['lock', 'a', '--ttl', '0', '--', 'true'],
    ['elect', 'a', 'b', '--ttl', '0'],
    ['get', 'a', '--limit', '-1'],
    ['lease', 'grant', 'long'],
    ['lease', 'grant', '60', '--id', 'xyz'],
  ])('wrong usage exits with code 2 and a reason: %s %s %s %s', async (...argv) => {
    const { code, out, err } = await runCommand(argv.filter((word) => word !== undefined));
    expect(code).toBe(2);
    expect(out).toBe('');
    expect(err).toMatch(/^[Ee]rror: /);
  });

  // As a process: loading the server from its sources into this process takes seconds.
  test('wrong usage of serve exits with code 2 and a reason', async () => {
    const { code, out, err } = await new ServeProcess(['serve', '--frob']).ended;
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(/^[Ee]rror: /);
  });

  test('help goes to stdout and names every command', async () => {
    const { code, out } = await runCommand(['--help']);
    expect(code).toBe(0);
    for (const name of ['serve', 'lease', 'put', 'get', 'del', 'watch', 'Exit codes']) expect(out).toContain(name);
    expect((await runCommand(['lease', 'help', 'grant'])).out).toContain('--label');
    expect((await runCommand(['lease', 'grant', '--help'])).out).toContain('--endpoints');
  });
});
