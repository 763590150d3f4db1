import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServeProcess } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StallMeter } from '../cluster/stall-meter.ts';
import { etcdServerKinds } from '../library/etcd-servers.ts';
import type { EtcdServer, EtcdServerKind } from '../library/etcd-servers.ts';
import { runCommand } from '../running-command.ts';

/** Long enough for a machine that is busy with other tests. */
const timeoutMs = 90_000;
/** The grace in tests of a command that ends before it is killed. */
const longGrace = ['--kill-after', '60s'];

/** The tests of `tenure lock` on a server of this kind, if it is installed. Each test locks a name of its own. */
export function describeLock(name: EtcdServerKind['name']): void {
  const kinds = etcdServerKinds.filter((kind) => kind.name === name && kind.isThere());
  // The tests mostly wait for processes to end and for leases to expire.
  describe.concurrent.each(kinds)('tenure lock on $name', { timeout: timeoutMs }, (kind) => {
    let server: EtcdServer;
    let folder: string;

    beforeAll(async () => {
      server = await kind.start();
      folder = mkdtempSync(join(tmpdir(), 'tenure-lock-'));
    });
    afterAll(async () => {
      await server.dispose();
      rmSync(folder, { recursive: true, force: true });
    });

    const env = (of = server): Record<string, string> => ({ TENURE_ENDPOINTS: of.endpoint });

    /** The built command as a process; `script` is for sh. */
    function lock(name: string, flags: readonly string[], script: string, of = server): ServeProcess {
      return new ServeProcess(['lock', name, ...flags, '--', 'sh', '-c', script], env(of));
    }

    test('runs two commands one after the other, with tokens that grow', async () => {
      const file = join(folder, 'log');
      const begin = `echo "begin $TENURE_LEASE_NAME" >> ${file}; echo $TENURE_FENCING_TOKEN`;
      const script = `${begin}; sleep 0.3; echo end >> ${file}`;
      const ends = await Promise.all([lock('two', [], script).ended, lock('two', [], script).ended]);
      expect(ends.map(({ code }) => code)).toEqual([0, 0]);
      expect(readFileSync(file, 'utf8')).toBe('begin two\nend\n'.repeat(2));
      const [one = 0, other = 0] = ends.map(({ out }) => Number(out));
      expect(one).toBeGreaterThan(0);
      expect(one).not.toBe(other);
      const third = await lock('two', ['--wait', 'none'], 'echo $TENURE_FENCING_TOKEN').ended;
      expect(Number(third.out)).toBeGreaterThan(Math.max(one, other));
    });

    test('ends with the exit code of the command, and releases', async () => {
      expect((await lock('code', [], 'exit 7').ended).code).toBe(7);
      expect((await lock('code', ['--wait', 'none'], 'kill -9 $$').ended).code).toBe(128 + 9);
      const missing = await new ServeProcess(['lock', 'code', '--wait', 'none', '--', './nosuch'], env()).ended;
      expect([missing.code, missing.err]).toEqual([127, 'Error: ./nosuch: not found\n']);
    });

    test('passes signals on to the command and to what it has started', async () => {
      // The short sleep lets the shell run its trap soon.
      const inner = 'trap "echo hup; exit 0" HUP; echo up; while :; do sleep 0.05; done';
      const running = lock('signals', [], `trap "wait; exit 5" HUP; sh -c '${inner}' & wait`);
      await running.printed('up');
      const end = await running.end('SIGHUP');
      expect([end.code, end.out]).toEqual([5, 'up\nhup\n']);
      expect((await lock('signals', ['--wait', 'none'], 'true').ended).code).toBe(0);
    });

    test('gives up after its wait time, and leaves the queue when it is stopped', async () => {
      const holder = lock('wait', [], 'echo up; exec sleep 1000');
      await holder.printed('up');
      const none = await lock('wait', ['--wait', 'none'], 'echo never').ended;
      expect([none.code, none.out]).toEqual([124, '']);
      expect(none.err).toMatch(/^Error: the lease "wait" is held by /);
      const short = await lock('wait', ['--wait', '200ms'], 'echo never').ended;
      expect([short.code, short.out]).toEqual([124, '']);
      const waiting = lock('wait', [], 'echo never');
      while (!waiting.err.includes('waiting for wait')) await new Promise((resolve) => setTimeout(resolve, 20));
      expect((await waiting.end('SIGTERM')).code).toBe(128 + 15);
      expect((await holder.end('SIGTERM')).code).toBe(128 + 15);
      expect((await lock('wait', ['--wait', 'none'], 'true').ended).code).toBe(0);
    });

    test('a holder that is killed with -9 keeps the next one waiting for no longer than its TTL', async () => {
      const ttlMs = 3000;
      const startedMs = performance.now();
      const first = lock('killed', ['--ttl', `${ttlMs}ms`], 'echo up $$; exec sleep 1000');
      const orphan = Number(/up (\d+)/.exec(await first.printed('\n'))?.[1]);
      // Waiting for its end would wait for the command, which runs on and has inherited its output.
      first.signal('SIGKILL');
      const next = await lock('killed', [], 'echo mine').ended.finally(() => process.kill(orphan, 'SIGKILL'));
      expect([next.code, next.out]).toEqual([0, 'mine\n']);
      expect(performance.now() - startedMs, 'it was held before the TTL had passed').toBeGreaterThan(ttlMs);
    });

    test.each([
      { what: 'its lease is revoked', name: 'revoked' },
      { what: 'its key is deleted', name: 'deleted' },
    ])('ends the command when $what', async ({ name }) => {
      const flags = ['--ttl', '30s', ...longGrace];
      const running = lock(name, flags, 'trap "echo terminated; exit 0" TERM; echo up; while :; do sleep 0.05; done');
      await running.printed('up');
      const keys = [`tenure/lease/${name}/`, '--prefix'];
      if (name === 'deleted') {
        expect((await runCommand(['del', ...keys], { env: env() })).out).toBe('1\n');
      } else {
        const { out } = await runCommand(['get', ...keys, '-w', 'json'], { env: env() });
        const id = BigInt(/"lease":(\d+)/.exec(out)?.[1] ?? 0).toString(16);
        expect((await runCommand(['lease', 'revoke', id], { env: env() })).code).toBe(0);
      }
      const { code, out, err } = await running.ended;
      expect([code, out]).toEqual([125, 'up\nterminated\n']);
      // sh may itself report that its sleep was terminated.
      expect(err).toMatch(new RegExp(`Error: the lease "${name}" was lost: its entry was removed\n$`));
    });

    test('a command that ignores SIGTERM is killed before the TTL has passed when the server has stopped', async () => {
      const ttlMs = 9000;
      const own = await kind.start();
      const running = lock(
        'stubborn',
        ['--ttl', `${ttlMs}ms`],
        'trap "" TERM; echo up; while :; do sleep 0.1; done',
        own,
      );
      const meter = new StallMeter(() => [running.pid]);
      await running.printed('up');
      await own.kill();
      // Its last renewal was acknowledged before this time.
      const stoppedMs = performance.now();
      const { code, err } = await running.ended.finally(() => own.dispose());
      const endedMs = performance.now();
      meter.stop();
      expect(code).toBe(125);
      expect(err).toMatch(/^Error: the lease "stubborn" was lost: /);
      const tookMs = endedMs - stoppedMs - meter.between(stoppedMs, endedMs);
      expect(tookMs, `it took ${tookMs} ms`).toBeLessThan(ttlMs);
    });

    test('without a server, or with an invalid TTL, the command is not run', async () => {
      // No server listens on this port.
      const nowhere = { TENURE_ENDPOINTS: '127.0.0.1:1' };
      const wrong = await lock('a', ['--ttl', '0'], 'echo never').ended;
      expect([wrong.code, wrong.out]).toEqual([2, '']);
      const { code, out, err } = await new ServeProcess(['lock', 'a', '--', 'echo', 'never'], nowhere).ended;
      expect([code, out]).toEqual([3, '']);
      expect(err).toMatch(/start one with: tenure serve/);
    });
  });
}
