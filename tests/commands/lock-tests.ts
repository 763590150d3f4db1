import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServeProcess } from '@tenure/test-support';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { StallMeter } from '../cluster/stall-meter.ts';
import { etcdServerKinds } from '../library/etcd-servers.ts';
import type { EtcdServer, EtcdServerKind } from '../library/etcd-servers.ts';
import { runCommand } from '../running-command.ts';

/** Long enough for a machine that is busy with other tests. */
const timeoutMs = 90_000;
/** In tests that look at what a command does before it is ended by force. */
const longGrace = ['--kill-after', '60s'];

/** What `tenure lock` does on a server of this kind, where there is one. Each test has a name of its own to lock. */
export function describeLock(name: EtcdServerKind['name']): void {
  const kinds = etcdServerKinds.filter((kind) => kind.name === name && kind.isThere());
  // They mostly wait for processes and for lives to end.
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
      assert.deepEqual(
        ends.map(({ code }) => code),
        [0, 0],
      );
      assert.equal(readFileSync(file, 'utf8'), 'begin two\nend\n'.repeat(2));
      const [one, other] = ends.map(({ out }) => Number(out));
      assert.ok(one !== undefined && other !== undefined && one > 0 && one !== other);
      const third = await lock('two', ['--wait', 'none'], 'echo $TENURE_FENCING_TOKEN').ended;
      assert.ok(Number(third.out) > Math.max(one, other));
    });

    test('ends with the exit code of the command, and releases', async () => {
      assert.equal((await lock('code', [], 'exit 7').ended).code, 7);
      assert.equal((await lock('code', ['--wait', 'none'], 'kill -9 $$').ended).code, 128 + 9);
      const missing = await new ServeProcess(['lock', 'code', '--wait', 'none', '--', './nosuch'], env()).ended;
      assert.deepEqual([missing.code, missing.err], [127, 'Error: ./nosuch: not found\n']);
    });

    test('passes signals on to the command and to what it has started', async () => {
      // Whatever the shell is just doing, it comes to its trap within a moment.
      const inner = 'trap "echo hup; exit 0" HUP; echo up; while :; do sleep 0.05; done';
      const running = lock('signals', [], `trap "wait; exit 5" HUP; sh -c '${inner}' & wait`);
      await running.printed('up');
      const end = await running.end('SIGHUP');
      assert.deepEqual([end.code, end.out], [5, 'up\nhup\n']);
      assert.equal((await lock('signals', ['--wait', 'none'], 'true').ended).code, 0);
    });

    test('gives up in the time that it may wait, and leaves the line when it is stopped', async () => {
      const holder = lock('wait', [], 'echo up; exec sleep 1000');
      await holder.printed('up');
      const none = await lock('wait', ['--wait', 'none'], 'echo never').ended;
      assert.deepEqual([none.code, none.out], [124, '']);
      assert.match(none.err, /^Error: the lease "wait" is held by /);
      const short = await lock('wait', ['--wait', '200ms'], 'echo never').ended;
      assert.deepEqual([short.code, short.out], [124, '']);
      const waiting = lock('wait', [], 'echo never');
      while (!waiting.err.includes('waiting for wait')) await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal((await waiting.end('SIGTERM')).code, 128 + 15);
      assert.equal((await holder.end('SIGTERM')).code, 128 + 15);
      assert.equal((await lock('wait', ['--wait', 'none'], 'true').ended).code, 0);
    });

    test('a holder that is killed with -9 keeps the next one waiting for no longer than its TTL', async () => {
      const ttlMs = 3000;
      const startedMs = performance.now();
      const first = lock('killed', ['--ttl', `${ttlMs}ms`], 'echo up $$; exec sleep 1000');
      const orphan = Number(/up (\d+)/.exec(await first.printed('\n'))?.[1]);
      // Its end would be that of the command, which runs on and has its output.
      first.signal('SIGKILL');
      const next = await lock('killed', [], 'echo mine').ended.finally(() => process.kill(orphan, 'SIGKILL'));
      assert.deepEqual([next.code, next.out], [0, 'mine\n']);
      assert.ok(performance.now() - startedMs > ttlMs, 'nobody held it before the TTL had passed');
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
        assert.equal((await runCommand(['del', ...keys], { env: env() })).out, '1\n');
      } else {
        const { out } = await runCommand(['get', ...keys, '-w', 'json'], { env: env() });
        const id = BigInt(/"lease":(\d+)/.exec(out)?.[1] ?? 0).toString(16);
        assert.equal((await runCommand(['lease', 'revoke', id], { env: env() })).code, 0);
      }
      const { code, out, err } = await running.ended;
      assert.deepEqual([code, out], [125, 'up\nterminated\n']);
      // sh may say by itself that its sleep was terminated.
      assert.match(err, new RegExp(`Error: the lease "${name}" was lost: it was taken away\n$`));
    });

    test('a command that heeds no SIGTERM is gone before the TTL has passed on a server that has stopped', async () => {
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
      // Its last renewal was acknowledged before this.
      const stoppedMs = performance.now();
      const { code, err } = await running.ended.finally(() => own.dispose());
      const endedMs = performance.now();
      meter.stop();
      assert.equal(code, 125);
      assert.match(err, /^Error: the lease "stubborn" was lost: /);
      const tookMs = endedMs - stoppedMs - meter.between(stoppedMs, endedMs);
      assert.ok(tookMs < ttlMs, `it took ${tookMs} ms`);
    });

    test('without a server, or with a TTL that cannot be, nothing is run', async () => {
      // Nothing listens there.
      const nowhere = { TENURE_ENDPOINTS: '127.0.0.1:1' };
      const wrong = await lock('a', ['--ttl', '0'], 'echo never').ended;
      assert.deepEqual([wrong.code, wrong.out], [2, '']);
      const { code, out, err } = await new ServeProcess(['lock', 'a', '--', 'echo', 'never'], nowhere).ended;
      assert.deepEqual([code, out], [3, '']);
      assert.match(err, /start one with: tenure serve/);
    });
  });
}
