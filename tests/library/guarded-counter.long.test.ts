import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { hasPostgres, PostgresCluster } from '@tenure/test-support';
import pg from 'pg';
import { postgresBackend } from 'tenure/postgres';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';

const program = fileURLToPath(new URL('counter.mjs', import.meta.url));
const ttlMs = 2000;
const contenders = 8;
const [stops, kills] = inject('effort') === 'soak' ? [3, 3] : [1, 1];
/** The number of increments before the next fault. */
const countsBetween = 5;
/** The limit of a single wait; the longest takes a few TTLs on an idle machine. */
const waitMs = 60_000;

/** `refused` is a write that the guard refused; `lost` is a lease whose loss was noticed. */
type What = 'read' | 'stopping' | 'counted' | 'refused' | 'lost' | 'failed';

interface Report {
  readonly what: What;
  readonly holder: string;
  readonly message?: string;
}

/** Children still alive: none may outlive the test process, however that ends. */
const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

/** Processes that increment one row under one lease, and their faults. */
class Counting {
  readonly reports: Report[] = [];
  readonly #url: string;
  readonly #isGuarded: boolean;
  readonly #children = new Map<string, ChildProcess>();
  #wake: () => void = () => undefined;

  constructor(url: string, isGuarded: boolean) {
    this.#url = url;
    this.#isGuarded = isGuarded;
  }

  start(): void {
    const holder = `c${this.#children.size}`;
    const backend = { kind: 'postgres', address: this.#url, listens: true };
    const options = { backend, address: this.#url, holder, ttlMs, isGuarded: this.#isGuarded };
    const child = fork(program, [JSON.stringify(options)], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    alive.add(child);
    child.once('exit', () => {
      alive.delete(child);
      this.#wake();
    });
    child.on('message', (report: Report) => {
      this.reports.push(report);
      this.#wake();
    });
    this.#children.set(holder, child);
  }

  /** The first report from `from` on that satisfies the condition. */
  async next(from: number, isSo: (report: Report) => boolean): Promise<Report> {
    await this.#until(() => this.reports.slice(from).some(isSo));
    return this.reports.slice(from).find(isSo)!;
  }

  /** Waits for this number of increments from now on. */
  async counted(times: number): Promise<void> {
    const enough = this.#count('counted') + times;
    await this.#until(() => this.#count('counted') >= enough);
  }

  /** Stops a holder between its read and its write until other processes have incremented. */
  async stopOne(): Promise<void> {
    const from = this.reports.length;
    const living = [...this.#children].filter(([, child]) => alive.has(child));
    const [holder, child] = living[from % living.length]!;
    child.send('stop');
    await this.next(from, (report) => report.what === 'stopping' && report.holder === holder);
    await this.counted(countsBetween);
    const woken = this.reports.length;
    child.kill('SIGCONT');
    await this.next(woken, ({ what, holder: of }) => of === holder && (what === 'counted' || what === 'refused'));
  }

  /** Kills a process after its read, before or during its write, and replaces it by another one. */
  async killOne(): Promise<void> {
    const { holder } = await this.next(this.reports.length, ({ what }) => what === 'read');
    const child = this.#children.get(holder)!;
    child.kill('SIGKILL');
    if (alive.has(child)) await once(child, 'exit');
    this.start();
    await this.counted(countsBetween);
  }

  async finish(): Promise<void> {
    for (const child of this.#children.values()) if (alive.has(child)) child.send('enough');
    await this.#until(() => [...this.#children.values()].every((child) => !alive.has(child)));
  }

  async dispose(): Promise<void> {
    const living = [...this.#children.values()].filter((child) => alive.has(child));
    const ended = living.map((child) => once(child, 'exit'));
    for (const child of living) child.kill('SIGKILL');
    await Promise.all(ended);
  }

  describe(): string {
    const lines = this.reports.slice(-30).map(({ what, holder, message }) => `${holder} ${what} ${message ?? ''}`);
    return lines.join('\n');
  }

  async #until(isSo: () => boolean): Promise<void> {
    const endMs = performance.now() + waitMs;
    while (!isSo()) {
      const leftMs = endMs - performance.now();
      expect(leftMs, `timed out:\n${this.describe()}`).toBeGreaterThan(0);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  #count(what: What): number {
    return this.reports.filter((report) => report.what === what).length;
  }
}

describe.skipIf(!hasPostgres())('a counter in PostgreSQL, of holders that are stopped and killed', () => {
  let cluster: PostgresCluster;
  let counting: Counting;

  beforeAll(async () => {
    cluster = await PostgresCluster.create();
    const pool = new pg.Pool({ connectionString: cluster.url() });
    await postgresBackend({ pool }).migrate();
    await pool.query('CREATE TABLE counter (value bigint NOT NULL, fence bigint NOT NULL)');
    await pool.query('CREATE TABLE counts (holder text NOT NULL, value bigint NOT NULL)');
    await pool.end();
  });
  beforeEach(async () => {
    await cluster.query('TRUNCATE counter, counts');
    await cluster.query('INSERT INTO counter VALUES (0, 0)');
  });
  afterEach(() => counting.dispose());
  afterAll(() => cluster.dispose());

  function begin(isGuarded: boolean): void {
    counting = new Counting(cluster.url(), isGuarded);
    for (let at = 0; at < contenders; at++) counting.start();
  }

  /** The value of the counter and the number of writes, which is greater if increments were lost. */
  async function outcome(): Promise<{ value: number; written: number; different: number }> {
    const text =
      'SELECT (SELECT value FROM counter), count(*) AS written, count(DISTINCT value) AS different FROM counts';
    const [row] = await cluster.query(text);
    return { value: Number(row?.['value']), written: Number(row?.['written']), different: Number(row?.['different']) };
  }

  test('loses no increment if reads and writes have the token', async () => {
    begin(true);
    await counting.counted(countsBetween);
    for (let fault = 0; fault < stops; fault++) await counting.stopOne();
    for (let fault = 0; fault < kills; fault++) await counting.killOne();
    await counting.finish();
    const { value, written, different } = await outcome();
    const told = counting.reports.filter(({ what }) => what === 'counted').length;
    expect({ written, different }, counting.describe()).toStrictEqual({ written: value, different: value });
    // A killed process may have written without a report; each report follows a write.
    expect(told, `${told} of ${written}`).toBeLessThanOrEqual(written);
    expect(written, `${told} of ${written}`).toBeLessThanOrEqual(told + kills);
    const refused = counting.reports.filter(({ what }) => what === 'refused').length;
    expect(refused, `only ${refused} were refused`).toBeGreaterThanOrEqual(stops);
  });

  test('loses increments without the token, under the same lease', async () => {
    begin(false);
    await counting.counted(countsBetween);
    for (let fault = 0; fault < stops; fault++) await counting.stopOne();
    await counting.finish();
    const { value, written, different } = await outcome();
    expect(value, `${value} of ${written}: ${counting.describe()}`).toBeLessThan(written);
    expect(different, `${value} of ${written}: ${counting.describe()}`).toBeLessThan(written);
  });
});
