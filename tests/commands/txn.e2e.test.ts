import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { etcdServerKinds } from '../library/etcd-servers.ts';
import type { EtcdServer } from '../library/etcd-servers.ts';
import { runCommand } from '../running-command.ts';

/** The first transaction puts the keys that the others read. */
const transactions: readonly string[] = [
  'mod("t/a") = "0"\n\nput t/a "a value"\nput "t/b" \'2\'\n\nget t/a\n\n',
  'mod("t/a") = "0"\n\nput t/a again\n\nget t/a\nget t/ --prefix\ndel t/none --prev-kv\n\n',
  'c("t/a") > "0"\nver("t/a") = "1"\nvalue("t/a") = "a value"\nval("t/b") != "3"\n\nget t/b\n\n\n',
  'version("t/a") < "1"\n\n\nget t/ t/b --limit 1\n\n',
  '\nget t/a --keys-only\n\n\n',
];

describe.each(etcdServerKinds.filter(({ isThere }) => isThere()))(
  'tenure txn on $name',
  { timeout: 60_000 },
  (kind) => {
    let server: EtcdServer;
    beforeAll(async () => {
      server = await kind.start();
    });
    afterAll(() => server.dispose());

    const txn = (stdin: string, ...flags: string[]) => {
      return runCommand(['txn', '--endpoints', server.endpoint, ...flags], { stdin });
    };

    function etcdctl(input: string, ...flags: string[]): string {
      const env = { ...process.env, ETCDCTL_API: '3' };
      const args = ['txn', `--endpoints=${server.endpoint}`, ...flags];
      const { status, stdout, stderr } = spawnSync('etcdctl', args, { encoding: 'utf8', input, env });
      expect(status, stderr).toBe(0);
      return stdout;
    }

    test('does one thing or the other', async () => {
      const [first = '', second = ''] = transactions;
      expect(await txn(first)).toEqual({ code: 0, out: 'SUCCESS\n\nOK\n\nOK\n', err: '' });
      const expected = 'FAILURE\n\nt/a\na value\n\nt/a\na value\nt/b\n2\n\n0\n';
      expect((await txn(second)).out).toBe(expected);
      // The last part may end with the text.
      expect((await txn(second.trimEnd())).out).toBe(expected);
    });

    test('reads and prints the same bytes as etcdctl', async ({ skip }) => {
      if (spawnSync('etcdctl', ['version']).status !== 0) {
        expect(process.env['CI'], 'CI must have etcdctl').not.toBe('true');
        skip('etcdctl is not installed');
      }
      for (const transaction of transactions.slice(1)) {
        expect((await txn(transaction)).out).toBe(etcdctl(transaction));
        const json = (text: string) => text.replace(/"raft_term":\d+/, '');
        expect(json((await txn(transaction, '-w', 'json')).out)).toBe(json(etcdctl(transaction, '-w', 'json')));
      }
    });

    test('puts a key under a lease, and compares by it', async () => {
      await runCommand(['lease', 'grant', '60', '--id', 'a1', '--endpoints', server.endpoint]);
      expect((await txn('\nput t/leased v --lease a1\n\n')).out).toBe('SUCCESS\n\nOK\n');
      expect((await txn('lease("t/leased") = "a1"\n\ndel t/leased --prev-kv\n')).out).toBe(
        'SUCCESS\n\n1\nt/leased\nv\n',
      );
    });

    test.each([
      ['mod(a) = "0"', 'mod("key") > "0"'],
      ['size("a") = "0"', 'create, mod, version, value or lease'],
      ['mod("a") = "many"', '"many" must be a whole number'],
      ['\nput a', 'a put needs a value'],
      ['\nput a b c', 'too many arguments'],
      ['\nget a --frob', "unknown option '--frob'"],
      ['\nsnapshot save x', 'an operation is put, get or del'],
      ['\nput a "b', 'a quote does not end'],
    ])('%j is a usage error with a reason', async (text, words) => {
      const { code, out, err } = await txn(text);
      expect([code, out]).toEqual([2, '']);
      expect(err.startsWith('Error: '), err).toBe(true);
      expect(err, err).toContain(words);
    });

    test('a refused transaction changes nothing', async () => {
      const { code, err } = await txn('\nput dup 1\nput dup 2\n');
      expect([code, err]).toEqual([1, 'Error: etcdserver: duplicate key given in txn request\n']);
      expect((await runCommand(['get', 'dup', '--endpoints', server.endpoint])).out).toBe('');
    });
  },
);
