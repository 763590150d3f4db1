import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { hasPostgres, PostgresCluster } from '@tenure/test-support';
import { postgresBackend } from 'tenure/postgres';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, test } from 'vitest';
import { hasFaketime, SteppableClock } from '../cluster/steppable-clock.ts';

const program = fileURLToPath(new URL('suspended-holder.mjs', import.meta.url));
/** Long enough that no renewal of a busy machine comes too late by itself. */
const longTtlMs = 60_000;
/** Of holds that are to be outlived: the process that acquires one must still have it at its first look. */
const shortTtlMs = 3_000;

interface Look {
  readonly isHeld: boolean;
  readonly aborted: boolean;
  /** How often the hold's signal told that it aborted, up to the end of the look. */
  readonly aborts: number;
  readonly error?: string;
  readonly reason?: string;
  readonly token: string;
}

interface HolderOptions {
  readonly backend: object;
  readonly ttlMs: number;
  readonly autoRenew?: boolean;
  readonly clock?: SteppableClock;
}

/** Children still alive: none may outlive the test process, however that ends. */
const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

/** A process that holds a lease. */
class SuspendedHolder {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Resolves when it has the lease. */
  static async start(name: string, { clock, autoRenew = true, ...rest }: HolderOptions): Promise<SuspendedHolder> {
    const child = fork(program, [JSON.stringify({ name, autoRenew, ...rest })], {
      env: { ...process.env, ...clock?.env },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    alive.add(child);
    child.once('exit', () => alive.delete(child));
    const holder = new SuspendedHolder(child);
    const first = await holder.#next();
    assert.ok(first.isHeld && !first.aborted, `it never held: ${JSON.stringify(first)}`);
    return holder;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** What it says at its next look, before which nothing of it runs for so long. */
  look(blockMs = 0): Promise<Look> {
    const next = this.#next();
    this.#child.send({ what: 'look', blockMs });
    return next;
  }

  async end(): Promise<void> {
    if (!alive.has(this.#child)) return;
    const exited = once(this.#child, 'exit');
    this.#child.send({ what: 'end' });
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 10_000);
    await exited;
    clearTimeout(timer);
  }

  async #next(): Promise<Look> {
    const ended = once(this.#child, 'exit').then(() => Promise.reject(new Error('the holder has ended')));
    const [look] = (await Promise.race([once(this.#child, 'message'), ended])) as [Look];
    return look;
  }
}

function assertLost(look: Look, reasons: readonly string[]): void {
  const said = JSON.stringify(look);
  assert.equal(look.isHeld, false, said);
  assert.ok(look.aborted && look.aborts === 1 && look.error === 'LeaseLostError', said);
  assert.ok(reasons.includes(look.reason ?? ''), said);
}

const stores = [
  { name: 'memory', isThere: () => true },
  { name: 'PostgreSQL', isThere: hasPostgres },
] as const;

describe.each(stores.filter(({ isThere }) => isThere()))('a hold in $name whose process did not run', ({ name }) => {
  let cluster: PostgresCluster | undefined;
  let backend: object = { kind: 'memory' };
  let holder: SuspendedHolder | undefined;
  let names = 0;

  beforeAll(async () => {
    if (name === 'memory') return;
    cluster = await PostgresCluster.create();
    backend = { kind: 'postgres', address: cluster.url(), listens: false };
    const pool = new pg.Pool({ connectionString: cluster.url() });
    await postgresBackend({ pool }).migrate();
    await pool.end();
  });
  afterEach(() => holder?.end());
  afterAll(() => cluster?.dispose());

  async function hold(options: Omit<HolderOptions, 'backend'>): Promise<SuspendedHolder> {
    holder = await SuspendedHolder.start(`suspended-${++names}`, { backend, ...options });
    return holder;
  }

  test('is lost at the first look after the event loop was blocked beyond the TTL', async () => {
    const blocked = await hold({ ttlMs: shortTtlMs });
    assertLost(await blocked.look(shortTtlMs + 500), ['stalled', 'expired']);
    // It does not come back with a renewal that is answered later.
    assertLost(await blocked.look(), ['stalled', 'expired']);
  });

  test('has expired at the first look when nobody was to renew it', async () => {
    const blocked = await hold({ ttlMs: shortTtlMs, autoRenew: false });
    assertLost(await blocked.look(shortTtlMs + 500), ['expired']);
  });

  test('is held after a pause within the TTL', async () => {
    const blocked = await hold({ ttlMs: longTtlMs });
    const look = await blocked.look(1_000);
    assert.ok(look.isHeld && !look.aborted, JSON.stringify(look));
  });

  test.skipIf(!hasFaketime())('is lost at the first look after the wall clock went ahead beyond the TTL', async () => {
    const clock = new SteppableClock();
    const suspended = await hold({ ttlMs: longTtlMs, clock });
    try {
      // A clock that is set back suspends nothing.
      clock.stepTo(-3_600_000);
      assert.ok((await suspended.look()).isHeld);
      clock.stepTo(-3_600_000 + 2 * longTtlMs);
      assertLost(await suspended.look(), ['stalled', 'expired']);
      clock.stepTo(0);
      assertLost(await suspended.look(), ['stalled', 'expired']);
    } finally {
      await suspended.end();
      clock.dispose(suspended.pid);
    }
  });
});
