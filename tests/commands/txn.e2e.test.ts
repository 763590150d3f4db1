import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { etcdServerKinds } from '../library/etcd-servers.ts';
import type { EtcdServer } from '../library/etcd-servers.ts';
import { runCommand } from '../running-command.ts';

/** The first puts what the others look at. */
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
      assert.equal(status, 0, stderr);
      return stdout;
    }

    test('does one thing or the other', async () => {
      const [first = '', second = ''] = transactions;
      assert.deepEqual(await txn(first), { code: 0, out: 'SUCCESS\n\nOK\n\nOK\n', err: '' });
      const expected = 'FAILURE\n\nt/a\na value\n\nt/a\na value\nt/b\n2\n\n0\n';
      assert.equal((await txn(second)).out, expected);
      // The last part may end with the text.
      assert.equal((await txn(second.trimEnd())).out, expected);
    });

    test('takes and prints what etcdctl does, to the byte', async ({ skip }) => {
      if (spawnSync('etcdctl', ['version']).status !== 0) {
        assert.notEqual(process.env['CI'], 'true', 'CI must have etcdctl');
        skip('etcdctl is not installed');
      }
      for (const transaction of transactions.slice(1)) {
        assert.equal((await txn(transaction)).out, etcdctl(transaction));
        const json = (text: string) => text.replace(/"raft_term":\d+/, '');
        assert.equal(json((await txn(transaction, '-w', 'json')).out), json(etcdctl(transaction, '-w', 'json')));
      }
    });

    test('puts a key under a lease, and compares by it', async () => {
      await runCommand(['lease', 'grant', '60', '--id', 'a1', '--endpoints', server.endpoint]);
      assert.equal((await txn('\nput t/leased v --lease a1\n\n')).out, 'SUCCESS\n\nOK\n');
      assert.equal(
        (await txn('lease("t/leased") = "a1"\n\ndel t/leased --prev-kv\n')).out,
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
    ])('%j is wrong usage and says why', async (text, words) => {
      const { code, out, err } = await txn(text);
      assert.deepEqual([code, out], [2, '']);
      assert.ok(err.startsWith('Error: ') && err.includes(words), err);
    });

    test('what the server refuses changes nothing', async () => {
      const { code, err } = await txn('\nput dup 1\nput dup 2\n');
      assert.deepEqual([code, err], [1, 'Error: etcdserver: duplicate key given in txn request\n']);
      assert.equal((await runCommand(['get', 'dup', '--endpoints', server.endpoint])).out, '');
    });
  },
);
