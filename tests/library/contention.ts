import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { endWithUs } from '@tenure/test-support';
import { expect } from 'vitest';
import { StallMeter } from '../cluster/stall-meter.ts';

const program = fileURLToPath(new URL('contender.mjs', import.meta.url));
const waitMs = 60_000;
/** A stall may delay the notice of a loss if it began at most this long before the next holder. */
const lateLossMs = 1_000;

/** A report of a contender; times are of the machine's monotonic clock. */
interface Report {
  readonly what: 'ready' | 'acquired' | 'released' | 'lost' | 'failed';
  readonly holder: string;
  readonly atMs: number;
  readonly token?: string;
  /** The last check of the work that still found the lease held. */
  readonly lastHeldMs?: number;
  readonly lostMs?: number;
  readonly reason?: string;
  readonly message?: string;
}

export interface Holding {
  readonly holder: string;
  readonly token: bigint;
  readonly fromMs: number;
  /** The last time at which the holder certainly believed that it holds. */
  untilMs: number;
  how: 'holds' | 'released' | 'lost' | 'killed';
  reason: string | undefined;
  lostMs: number | undefined;
  /** Its process was paused, so that it could notice no loss. */
  wasPaused: boolean;
}

export interface ContenderOptions {
  readonly backend: object;
  readonly name: string;
  readonly holder: string;
  readonly ttlMs: number;
  readonly turns: number;
  readonly holdMs: number;
  /** The seed of its hold times. */
  readonly seed: number;
}

const isAlive = ({ exitCode, signalCode }: ChildProcess): boolean => exitCode === null && signalCode === null;

export const nowMs = (): number => Number(process.hrtime.bigint()) / 1e6;

/** Processes that contend for one lease, and all their events, in order. */
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

  /** Waits until the events satisfy the condition. */
  async until(what: string, isSo: () => boolean): Promise<void> {
    const endMs = nowMs() + waitMs;
    while (!isSo()) {
      expect(nowMs(), `timed out waiting until ${what}: ${this.describe()}`).toBeLessThan(endMs);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 100);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** The current holder, once there is one. */
  async holder(after?: Holding): Promise<Holding> {
    const isNext = (holding: Holding): boolean =>
      holding.how === 'holds' && (after === undefined || holding.token > after.token);
    await this.until('a process holds', () => this.holdings.some(isNext));
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

  /** Lets each process end after its current turn. */
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

  /** Waits until each process has had its turns and has ended. */
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

  /** The time between two moments in which the machine did not let these processes run. */
  owedMs(fromMs: number, toMs: number): number {
    const offsetMs = performance.now() - nowMs();
    return this.#meter.between(fromMs + offsetMs, toMs + offsetMs);
  }

  /** The duration less the time in which the machine did not let them run. */
  tookMs(fromMs: number, toMs: number): number {
    return toMs - fromMs - this.owedMs(fromMs, toMs);
  }

  /** A running holder must notice its loss before the next one holds. */
  expectKnownBefore(lost: Holding, next: Holding): void {
    const { lostMs } = lost;
    if (lostMs === undefined || lostMs <= next.fromMs) return;
    const lateMs = lostMs - next.fromMs;
    const owedMs = this.owedMs(next.fromMs - lateLossMs, lostMs);
    const words = `${lost.holder} learnt of its loss ${lateMs} ms too late, of which ${owedMs} are owed`;
    expect(lateMs, `${words}: ${this.describe()}`).toBeLessThanOrEqual(owedMs);
  }

  /** Never two at a time, and each with a greater token than the one before. */
  expectExclusion(): void {
    const inOrder = this.holdings.toSorted((one, other) => (one.token < other.token ? -1 : 1));
    for (const [at, next] of inOrder.entries()) {
      const before = inOrder[at - 1];
      if (before === undefined) continue;
      expect(next.token, `two have the token ${next.token}: ${this.describe()}`).toBeGreaterThan(before.token);
      const words = `${before.holder} held until ${before.untilMs}, ${next.holder} from ${next.fromMs}`;
      expect(before.untilMs, `${words}: ${this.describe()}`).toBeLessThanOrEqual(next.fromMs);
      if (!before.wasPaused) this.expectKnownBefore(before, next);
    }
  }

  /** The times from each release to the next acquisition, less the machine's stalls, in ascending order. */
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
