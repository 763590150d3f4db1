import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { endWithUs } from '@tenure/test-support';
import { StallMeter } from '../cluster/stall-meter.ts';

const program = fileURLToPath(new URL('contender.mjs', import.meta.url));
const waitMs = 60_000;
/** A stall that begins so long before the next one holds may be why the one before it learnt late of its loss. */
const lateLossMs = 1_000;

/** As a contender tells it; times are of the machine's monotonic clock. */
interface Report {
  readonly what: 'ready' | 'acquired' | 'released' | 'lost' | 'failed';
  readonly holder: string;
  readonly atMs: number;
  readonly token?: string;
  /** When the work under the lease last looked and was told that it holds. */
  readonly lastHeldMs?: number;
  readonly lostMs?: number;
  readonly reason?: string;
  readonly message?: string;
}

export interface Holding {
  readonly holder: string;
  readonly token: bigint;
  readonly fromMs: number;
  /** Until then the holder surely thought that it holds. */
  untilMs: number;
  how: 'holds' | 'released' | 'lost' | 'killed';
  reason: string | undefined;
  lostMs: number | undefined;
  /** Its process did not run for a while, so that it could learn of nothing. */
  wasPaused: boolean;
}

export interface ContenderOptions {
  readonly backend: object;
  readonly name: string;
  readonly holder: string;
  readonly ttlMs: number;
  readonly turns: number;
  readonly holdMs: number;
  /** How long it holds each time follows from it. */
  readonly seed: number;
}

const isAlive = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode === null && signalCode === null;

export const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** Processes that contend for one lease, and all that they did, in order. */
export class Contention {
  readonly holdings: Holding[] = [];
  readonly failures: string[] = [];
  readonly #children = new Map<string, ChildProcess>();
  readonly #meter = new StallMeter(() => [...this.#children.values()].flatMap(({ pid }) => pid ?? []));
  #wake: () => void = () => undefined;

  /** Resolves when it is ready to contend. */
  async start(options: ContenderOptions): Promise<void> {
    const stdio = ['ignore', 'inherit', 'inherit', 'ipc'] as const;
    const child = endWithUs(fork(program, [JSON.stringify(options)], { stdio: [...stdio] }));
    this.#children.set(options.holder, child);
    const ready = new Promise<void>((resolve) => {
      child.on('message', (report: Report) => {
        if (report.what === 'ready') resolve();
        this.#take(report);
      });
    });
    await Promise.race([ready, once(child, 'exit')]);
  }

  /** Waits until what happened is so. */
  async until(what: string, isSo: () => boolean): Promise<void> {
    const endMs = nowMs() + waitMs;
    while (!isSo()) {
      assert.ok(nowMs() < endMs, `waited in vain until ${what}: ${this.describe()}`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 100);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** The one that holds now, once there is one. */
  async holder(after?: Holding): Promise<Holding> {
    const isNext = (holding: Holding): boolean =>
      holding.how === 'holds' && (after === undefined || holding.token > after.token);
    await this.until('somebody holds', () => this.holdings.some(isNext));
    return this.holdings.find(isNext)!;
  }

  pause(holder: string): void {
    this.#children.get(holder)?.kill('SIGSTOP');
    for (const holding of this.holdings) {
      if (holding.holder === holder && holding.how === 'holds') holding.wasPaused = true;
    }
  }

  resume(holder: string): void {
    this.#children.get(holder)?.kill('SIGCONT');
  }

  /** No further turns after the one that each is in. */
  enough(): void {
    for (const child of this.#children.values()) if (isAlive(child)) child.send('enough');
  }

  async kill(holder: string): Promise<void> {
    const child = this.#children.get(holder);
    const atMs = nowMs();
    child?.kill('SIGKILL');
    for (const holding of this.holdings) {
      if (holding.holder !== holder || holding.how !== 'holds') continue;
      holding.how = 'killed';
      holding.untilMs = atMs;
    }
    if (child !== undefined && isAlive(child)) await once(child, 'exit');
  }

  /** Each has had its turns and has ended. */
  async finished(): Promise<void> {
    await this.until('all have ended', () => [...this.#children.values()].every((child) => !isAlive(child)));
  }

  async dispose(): Promise<void> {
    this.#meter.stop();
    for (const [holder, child] of this.#children) {
      if (!isAlive(child)) continue;
      child.kill('SIGCONT');
      await this.kill(holder);
    }
  }

  /** What the machine owes to these processes between two moments. */
  owedMs(fromMs: number, toMs: number): number {
    const offsetMs = performance.now() - nowMs();
    return this.#meter.between(fromMs + offsetMs, toMs + offsetMs);
  }

  /** How long it took, on a machine that had let all of them run. */
  tookMs(fromMs: number, toMs: number): number {
    return toMs - fromMs - this.owedMs(fromMs, toMs);
  }

  /** What was lost while its process ran was known to it before the next one came. */
  expectKnownBefore(lost: Holding, next: Holding): void {
    const { lostMs } = lost;
    if (lostMs === undefined || lostMs <= next.fromMs) return;
    const lateMs = lostMs - next.fromMs;
    const owedMs = this.owedMs(next.fromMs - lateLossMs, lostMs);
    const words = `${lost.holder} learnt of its loss ${lateMs} ms too late, of which ${owedMs} are owed`;
    assert.ok(lateMs <= owedMs, `${words}: ${this.describe()}`);
  }

  /** Never two at a time, and each with a greater token than the one before. */
  expectExclusion(): void {
    const inOrder = this.holdings.toSorted((one, other) => (one.token < other.token ? -1 : 1));
    for (const [at, next] of inOrder.entries()) {
      const before = inOrder[at - 1];
      if (before === undefined) continue;
      assert.ok(next.token > before.token, `two have the token ${next.token}: ${this.describe()}`);
      const words = `${before.holder} held until ${before.untilMs}, ${next.holder} from ${next.fromMs}`;
      assert.ok(before.untilMs <= next.fromMs, `${words}: ${this.describe()}`);
      if (!before.wasPaused) this.expectKnownBefore(before, next);
    }
  }

  /** From each release to the acquisition of the next one, on a machine that had let them run, in ascending order. */
  handOversMs(): number[] {
    const inOrder = this.holdings.toSorted((one, other) => one.fromMs - other.fromMs);
    return inOrder
      .flatMap((next, at) => {
        const before = inOrder[at - 1];
        return before?.how === 'released' ? [this.tookMs(before.untilMs, next.fromMs)] : [];
      })
      .toSorted((one, other) => one - other);
  }

  describe(): string {
    const lines = this.holdings.map(({ holder, token, fromMs, untilMs, how, reason }) => {
      return `${holder} ${token} ${fromMs.toFixed(0)}..${untilMs.toFixed(0)} ${how} ${reason ?? ''}`;
    });
    return [...lines, ...this.failures.slice(-5)].join('\n');
  }

  #take(report: Report): void {
    const holding = this.holdings.find(({ token }) => `${token}` === report.token);
    if (report.what === 'failed') this.failures.push(`${report.holder}: ${report.message}`);
    else if (report.what === 'acquired') {
      const { holder, token = '', atMs } = report;
      const life = { untilMs: atMs, how: 'holds' as const, reason: undefined, lostMs: undefined, wasPaused: false };
      this.holdings.push({ holder, token: BigInt(token), fromMs: atMs, ...life });
    } else if (holding !== undefined && (report.what === 'released' || report.what === 'lost')) {
      holding.how = report.what;
      holding.untilMs = report.lastHeldMs ?? report.atMs;
      holding.reason = report.reason;
      holding.lostMs = report.lostMs;
    }
    this.#wake();
  }
}
