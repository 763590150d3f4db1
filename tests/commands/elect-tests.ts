import { ServeProcess } from '@tenure/test-support';
import { createLeaseManager } from 'tenure';
import { etcdBackend } from 'tenure/etcd';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { etcdServerKinds } from '../library/etcd-servers.ts';
import type { EtcdServer, EtcdServerKind } from '../library/etcd-servers.ts';
import { runCommand } from '../running-command.ts';

const timeoutMs = 90_000;

/** The tests of `tenure elect` and `tenure members` on a server of this kind, if it is installed. */
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

    test('tenure elect: two candidates lead one after the other, and a listener sees every change', async () => {
      const listener = elect('e', '--listen');
      await listener.printed('e has no leader\n');
      const one = elect('e', 'one', '--ttl', '3s');
      await one.printed('e is led by one, token ');
      await listener.printed('e is led by one, token ');
      expect((await elect('e', 'none', '--wait', 'none').ended).code).toBe(124);
      const two = elect('e', 'two', '--ttl', '3s');
      expect((await one.end('SIGTERM')).code).toBe(0);
      await two.printed('e is led by two, token ');
      await listener.printed('e is led by two, token ');
      await two.end('SIGKILL');
      await listener.printed(/e is led by two.*\ne has no leader\n$/);
      const { code, out } = await listener.end('SIGINT');
      expect(code).toBe(0);
      const [first = 0, second = 0] = [...out.matchAll(/token (\d+)/g)].map(([, token]) => Number(token));
      expect(first, out).toBeGreaterThan(0);
      expect(second, out).toBeGreaterThan(first);
      expect(out).toMatch(/\ne has no leader\n$/);
    });

    test('tenure elect: a leader whose key is deleted ends with the exit code of a loss', async () => {
      const leader = elect('lost', 'v', '--ttl', '30s', '-w', 'json');
      const line = await leader.printed('\n');
      expect(line).toMatch(/^\{"election":"lost","leader":\{"holder":"[^"]+","value":"v","fencingToken":\d+\}\}\n$/);
      await runCommand(['del', 'tenure/election/lost/', '--prefix'], { env: env() });
      const { code, err } = await leader.ended;
      expect([code, err]).toEqual([125, 'Error: the lease "lost" was lost: its entry was removed\n']);
    });

    test('tenure elect requires either a value or --listen', async () => {
      for (const args of [['e'], ['e', 'v', '--listen']]) {
        expect((await runCommand(['elect', ...args], { env: env() })).code).toBe(2);
      }
    });

    test('tenure members shows the members of a group', async () => {
      const backend = etcdBackend({ client: { endpoints: server.endpoint } });
      try {
        await using leases = createLeaseManager({ backend, holder: 'pod-7' });
        await using _member = await leases.membership('workers', { id: 'w1', weight: 2, metadata: { port: 80 } });
        const { out } = await runCommand(['members', 'workers'], { env: env() });
        expect(out).toBe('w1, weight 2, holder pod-7, {"port":80}\n');
        const json = await runCommand(['members', 'workers', '-w', 'json'], { env: env() });
        expect(JSON.parse(json.out)).toEqual({
          group: 'workers',
          members: [{ id: 'w1', holder: 'pod-7', weight: 2, metadata: { port: 80 } }],
        });
      } finally {
        await backend.close();
      }
      expect((await runCommand(['members', 'empty-group'], { env: env() })).out).toBe('');
    });

    test('tenure members and tenure status show the servers', async () => {
      const { out } = await runCommand(['members'], { env: env() });
      expect(out).toMatch(/^[0-9a-f]+, started, \w+, .*, http:\/\/127\.0\.0\.1:\d+, false\n$/);
      const status = await runCommand(['status', '--endpoints', `${server.endpoint},127.0.0.1:1`]);
      expect(status.code).toBe(3);
      const [up = '', down] = status.out.split('\n');
      expect(up).toMatch(new RegExp(`^${server.endpoint}, [0-9a-f]+, ${kind.name} \\d.*, leader, revision \\d+, `));
      expect(down).toBe('127.0.0.1:1, does not answer: connect ECONNREFUSED 127.0.0.1:1');
      const json = await runCommand(['status', '-w', 'json'], { env: env() });
      expect((JSON.parse(json.out) as { endpoint: string }[])[0]?.endpoint).toBe(server.endpoint);
      expect(json.code).toBe(0);
    });
  });
}
