import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { hasPostgres, PostgresCluster } from '@tenure/test-support';
import { postgresBackend } from 'tenure/postgres';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { hasFaketime, SteppableClock } from '../cluster/steppable-clock.ts';

const program = fileURLToPath(new URL('suspended-holder.mjs', import.meta.url));
/** Long enough that no renewal is late just because the machine is busy. */
const longTtlMs = 60_000;
/** The TTL of holds that the test outlives: the process must still hold at its first check. */
const shortTtlMs = 3_000;

interface Look {
  readonly isHeld: boolean;
  readonly aborted: boolean;
  /** The number of abort events of the hold's signal up to the end of the check. */
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
    expect(first.isHeld, `it never held: ${JSON.stringify(first)}`).toBe(true);
    expect(first.aborted, `it never held: ${JSON.stringify(first)}`).toBe(false);
    return holder;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** The result of its next check, before which the process is blocked for this time. */
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
  expect(look.isHeld, said).toBe(false);
  expect(look.aborted, said).toBeTruthy();
  expect(look.aborts, said).toBe(1);
  expect(look.error, said).toBe('LeaseLostError');
  expect(reasons, said).toContain(look.reason ?? '');
}

const stores = [
  // A short run prefers the driver with sockets, whose answers wait while the process is paused.
  { name: 'memory', isThere: () => inject('effort') === 'soak' || !hasPostgres() },
  { name: 'PostgreSQL', isThere: hasPostgres },
] as const;

describe.each(stores.filter(({ isThere }) => isThere()))('a hold in $name whose process was paused', ({ name }) => {
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

  test('is lost at the first check after the event loop was blocked beyond the TTL', async () => {
    const blocked = await hold({ ttlMs: shortTtlMs });
    assertLost(await blocked.look(shortTtlMs + 500), ['stalled', 'expired']);
    // A renewal that is answered later does not revive it.
    assertLost(await blocked.look(), ['stalled', 'expired']);
  });

  test('has expired at the first check without autoRenew', async () => {
    const blocked = await hold({ ttlMs: shortTtlMs, autoRenew: false });
    assertLost(await blocked.look(shortTtlMs + 500), ['expired']);
  });

  test('is held after a pause within the TTL', async () => {
    const blocked = await hold({ ttlMs: longTtlMs });
    const look = await blocked.look(1_000);
    expect(look.isHeld, JSON.stringify(look)).toBe(true);
    expect(look.aborted, JSON.stringify(look)).toBe(false);
  });

  test.skipIf(!hasFaketime())(
    'is lost at the first check after the wall clock jumped ahead beyond the TTL',
    async () => {
      const clock = new SteppableClock();
      const suspended = await hold({ ttlMs: longTtlMs, clock });
      try {
        // A clock that is set back is no suspension.
        clock.stepTo(-3_600_000);
        expect((await suspended.look()).isHeld).toBe(true);
        clock.stepTo(-3_600_000 + 2 * longTtlMs);
        assertLost(await suspended.look(), ['stalled', 'expired']);
        clock.stepTo(0);
        assertLost(await suspended.look(), ['stalled', 'expired']);
      } finally {
        await suspended.end();
        clock.dispose(suspended.pid);
      }
    },
  );
});
