import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { StallMeter } from '../cluster/stall-meter.ts';
import { etcdServerKinds } from '../library/etcd-servers.ts';
import type { EtcdServer } from '../library/etcd-servers.ts';
import { runCommand } from '../running-command.ts';
import { ServeProcess } from '../serve-process.ts';

/** Long enough for a machine that is busy with other tests. */
const timeoutMs = 90_000;
/** In tests that look at what a command does before it is ended by force. */
const longGrace = ['--kill-after', '60s'];

describe.each(etcdServerKinds.filter(({ isThere }) => isThere()))(
  'tenure lock on $name',
  { timeout: timeoutMs },
  (kind) => {
    let server: EtcdServer;
    let folder: string;
    const orphans: number[] = [];

    beforeEach(async () => {
      server = await kind.start();
      folder = mkdtempSync(join(tmpdir(), 'tenure-lock-'));
    });
    afterEach(async () => {
      for (const pid of orphans.splice(0)) process.kill(pid, 'SIGKILL');
      await server.dispose();
      rmSync(folder, { recursive: true, force: true });
    });

    const env = (): Record<string, string> => ({ TENURE_ENDPOINTS: server.endpoint });

    /** The built command as a process; `script` is for sh. */
    function lock(name: string, flags: readonly string[], script: string): ServeProcess {
      return new ServeProcess(['lock', name, ...flags, '--', 'sh', '-c', script], env());
    }

    test('runs two commands one after the other, with tokens that grow', async () => {
      const file = join(folder, 'log');
      const begin = `echo "begin $TENURE_LEASE_NAME" >> ${file}; echo $TENURE_FENCING_TOKEN`;
      const script = `${begin}; sleep 0.3; echo end >> ${file}`;
      const ends = await Promise.all([lock('a', [], script).ended, lock('a', [], script).ended]);
      assert.deepEqual(
        ends.map(({ code }) => code),
        [0, 0],
      );
      assert.equal(readFileSync(file, 'utf8'), 'begin a\nend\n'.repeat(2));
      const [one, other] = ends.map(({ out }) => Number(out));
      assert.ok(one !== undefined && other !== undefined && one > 0 && one !== other);
      const third = await lock('a', ['--wait', 'none'], 'echo $TENURE_FENCING_TOKEN').ended;
      assert.ok(Number(third.out) > Math.max(one, other));
    });

    test('ends with the exit code of the command, and releases', async () => {
      assert.equal((await lock('a', [], 'exit 7').ended).code, 7);
      assert.equal((await lock('a', ['--wait', 'none'], 'kill -9 $$').ended).code, 128 + 9);
      const missing = await new ServeProcess(['lock', 'a', '--wait', 'none', '--', './nosuch'], env()).ended;
      assert.deepEqual([missing.code, missing.err], [127, 'Error: ./nosuch: not found\n']);
    });

    test('passes signals on to the command and to what it has started', async () => {
      // Whatever the shell is just doing, it comes to its trap within a moment.
      const inner = 'trap "echo hup; exit 0" HUP; echo up; while :; do sleep 0.05; done';
      const running = lock('a', [], `trap "wait; exit 5" HUP; sh -c '${inner}' & wait`);
      await running.printed('up');
      const end = await running.end('SIGHUP');
      assert.deepEqual([end.code, end.out], [5, 'up\nhup\n']);
      assert.equal((await lock('a', ['--wait', 'none'], 'true').ended).code, 0);
    });

    test('gives up in the time that it may wait, and leaves the line when it is stopped', async () => {
      const holder = lock('a', [], 'echo up; exec sleep 1000');
      await holder.printed('up');
      const none = await lock('a', ['--wait', 'none'], 'echo never').ended;
      assert.deepEqual([none.code, none.out], [124, '']);
      assert.match(none.err, /^Error: the lease "a" is held by /);
      const short = await lock('a', ['--wait', '200ms'], 'echo never').ended;
      assert.deepEqual([short.code, short.out], [124, '']);
      const waiting = lock('a', [], 'echo never');
      while (!waiting.err.includes('waiting for a')) await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal((await waiting.end('SIGTERM')).code, 128 + 15);
      assert.equal((await holder.end('SIGTERM')).code, 128 + 15);
      assert.equal((await lock('a', ['--wait', 'none'], 'true').ended).code, 0);
    });

    test('a holder that is killed with -9 keeps the next one waiting for no longer than its TTL', async () => {
      const ttlMs = 3000;
      const startedMs = performance.now();
      const first = lock('a', ['--ttl', `${ttlMs}ms`], 'echo up $$; exec sleep 1000');
      orphans.push(Number(/up (\d+)/.exec(await first.printed('\n'))?.[1]));
      // Its end would be that of the command, which runs on and has its output.
      first.signal('SIGKILL');
      const next = await lock('a', [], 'echo mine').ended;
      assert.deepEqual([next.code, next.out], [0, 'mine\n']);
      assert.ok(performance.now() - startedMs > ttlMs, 'nobody held it before the TTL had passed');
    });

    test.each(['its lease is revoked', 'its key is deleted'])('ends the command when %s', async (what) => {
      const flags = ['--ttl', '3s', ...longGrace];
      const running = lock('a', flags, 'trap "echo terminated; exit 0" TERM; echo up; while :; do sleep 0.05; done');
      await running.printed('up');
      if (what === 'its key is deleted') {
        await runCommand(['del', 'tenure/lease/', '--prefix'], { env: env() });
      } else {
        const { out } = await runCommand(['lease', 'list'], { env: env() });
        const [, id = ''] = out.split('\n');
        assert.equal((await runCommand(['lease', 'revoke', id], { env: env() })).code, 0);
      }
      const { code, out, err } = await running.ended;
      assert.deepEqual([code, out], [125, 'up\nterminated\n']);
      // sh may say by itself that its sleep was terminated.
      assert.match(err, /Error: the lease "a" was lost: it was taken away\n$/);
    });

    test('a command that heeds no SIGTERM is gone before the TTL has passed on a server that has stopped', async () => {
      const ttlMs = 9000;
      const running = lock('a', ['--ttl', `${ttlMs}ms`], 'trap "" TERM; echo up; while :; do sleep 0.1; done');
      const meter = new StallMeter(() => [running.pid]);
      await running.printed('up');
      await server.kill();
      // Its last renewal was acknowledged before this.
      const stoppedMs = performance.now();
      const { code, err } = await running.ended;
      const endedMs = performance.now();
      meter.stop();
      assert.equal(code, 125);
      assert.match(err, /^Error: the lease "a" was lost: /);
      const tookMs = endedMs - stoppedMs - meter.between(stoppedMs, endedMs);
      assert.ok(tookMs < ttlMs, `it took ${tookMs} ms`);
    });

    test('without a server, or with a TTL that cannot be, nothing is run', async () => {
      const wrong = await lock('a', ['--ttl', '0'], 'echo never').ended;
      assert.deepEqual([wrong.code, wrong.out], [2, '']);
      await server.kill();
      const { code, out, err } = await lock('a', [], 'echo never').ended;
      assert.deepEqual([code, out], [3, '']);
      assert.match(err, /start one with: tenure serve/);
    });
  },
);
