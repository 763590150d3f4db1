import assert from 'node:assert/strict';
import { ServeProcess } from '@tenure/test-support';
import { createLeaseManager } from 'tenure';
import { etcdBackend } from 'tenure/etcd';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { etcdServerKinds } from '../library/etcd-servers.ts';
import type { EtcdServer, EtcdServerKind } from '../library/etcd-servers.ts';
import { runCommand } from '../running-command.ts';

const timeoutMs = 90_000;

/** What `tenure elect` and `tenure members` do on a server of this kind, where there is one. */
export function describeElect(name: EtcdServerKind['name']): void {
  const kinds = etcdServerKinds.filter((kind) => kind.name === name && kind.isThere());
  describe.concurrent.each(kinds)('on $name', { timeout: timeoutMs }, (kind) => {
    let server: EtcdServer;
    beforeAll(async () => {
      server = await kind.start();
    });
    afterAll(() => server.dispose());

    const env = (): Record<string, string> => ({ TENURE_ENDPOINTS: server.endpoint });
    const elect = (...args: string[]): ServeProcess => new ServeProcess(['elect', ...args], env());

    test('tenure elect: two candidates lead one after the other, and a listener sees all of it', async () => {
      const listener = elect('e', '--listen');
      await listener.printed('e has no leader\n');
      const one = elect('e', 'one', '--ttl', '3s');
      await one.printed('e is led by one, token ');
      await listener.printed('e is led by one, token ');
      assert.equal((await elect('e', 'none', '--wait', 'none').ended).code, 124);
      const two = elect('e', 'two', '--ttl', '3s');
      assert.equal((await one.end('SIGTERM')).code, 0);
      await two.printed('e is led by two, token ');
      await listener.printed('e is led by two, token ');
      await two.end('SIGKILL');
      await listener.printed(/e is led by two.*\ne has no leader\n$/);
      const { code, out } = await listener.end('SIGINT');
      assert.equal(code, 0);
      const [first = 0, second = 0] = [...out.matchAll(/token (\d+)/g)].map(([, token]) => Number(token));
      assert.ok(first > 0 && second > first, out);
      assert.match(out, /\ne has no leader\n$/);
    });

    test('tenure elect: a leader whose key is deleted ends with the code for a loss', async () => {
      const leader = elect('lost', 'v', '--ttl', '30s', '-w', 'json');
      const line = await leader.printed('\n');
      assert.match(line, /^\{"election":"lost","leader":\{"holder":"[^"]+","value":"v","fencingToken":\d+\}\}\n$/);
      await runCommand(['del', 'tenure/election/lost/', '--prefix'], { env: env() });
      const { code, err } = await leader.ended;
      assert.deepEqual([code, err], [125, 'Error: the lease "lost" was lost: it was taken away\n']);
    });

    test('tenure elect takes a value or listens', async () => {
      for (const args of [['e'], ['e', 'v', '--listen']]) {
        assert.equal((await runCommand(['elect', ...args], { env: env() })).code, 2);
      }
    });

    test('tenure members shows who has joined a group', async () => {
      const backend = etcdBackend({ client: { endpoints: server.endpoint } });
      try {
        await using leases = createLeaseManager({ backend, holder: 'pod-7' });
        await using _member = await leases.membership('workers', { id: 'w1', weight: 2, metadata: { port: 80 } });
        const { out } = await runCommand(['members', 'workers'], { env: env() });
        assert.equal(out, 'w1, weight 2, holder pod-7, {"port":80}\n');
        const json = await runCommand(['members', 'workers', '-w', 'json'], { env: env() });
        assert.deepEqual(JSON.parse(json.out), {
          group: 'workers',
          members: [{ id: 'w1', holder: 'pod-7', weight: 2, metadata: { port: 80 } }],
        });
      } finally {
        await backend.close();
      }
      assert.equal((await runCommand(['members', 'nobody'], { env: env() })).out, '');
    });

    test('tenure members and tenure status show the servers', async () => {
      const { out } = await runCommand(['members'], { env: env() });
      assert.match(out, /^[0-9a-f]+, started, \w+, .*, http:\/\/127\.0\.0\.1:\d+, false\n$/);
      const status = await runCommand(['status', '--endpoints', `${server.endpoint},127.0.0.1:1`]);
      assert.equal(status.code, 3);
      const [up = '', down] = status.out.split('\n');
      assert.match(up, new RegExp(`^${server.endpoint}, [0-9a-f]+, ${kind.name} \\d.*, leader, revision \\d+, `));
      assert.equal(down, '127.0.0.1:1, does not answer: connect ECONNREFUSED 127.0.0.1:1');
      const json = await runCommand(['status', '-w', 'json'], { env: env() });
      assert.equal((JSON.parse(json.out) as { endpoint: string }[])[0]?.endpoint, server.endpoint);
      assert.equal(json.code, 0);
    });
  });
}
