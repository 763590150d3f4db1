import type { StateMachine } from '@tenure/core';
import type { NodeClock, SeededRandom } from '@tenure/test-support';
// Loaded before virtual time begins: a server loads it when it opens, which takes real time.
import '../../packages/server/src/cluster/cluster.ts';
import { parseServerConfig } from '../../packages/server/src/config/parse-server-config.ts';
import type { ServerConfig } from '../../packages/server/src/config/server-config.ts';
import { EngineHealth } from '../../packages/server/src/engines/engine-health.ts';
import type { LogEngine } from '../../packages/server/src/engines/log-engine.ts';
import type { Logger } from '../../packages/server/src/logging/logger.ts';
import type { Random } from '../../packages/server/src/random/random.ts';
import { Server } from '../../packages/server/src/server.ts';
import { olderNetwork, withoutSettingLimits, type OlderVersion } from '../upgrades/older-version.ts';
import { PlainPasswords } from './plain-passwords.ts';
import type { SimulatedNetwork } from './simulated-network.ts';
import type { Trace } from './trace.ts';

export const clientPort = 2379;

export interface ServerProcessOptions {
  readonly name: string;
  /** The address of its machine. */
  readonly host: string;
  readonly flags: readonly string[];
  /** Undefined for the present version. */
  readonly older: OlderVersion | undefined;
  readonly maxPendingCommands: number;
  readonly clock: NodeClock;
  readonly random: SeededRandom;
  readonly network: SimulatedNetwork;
  readonly openEngine: () => Promise<LogEngine>;
  readonly trace: Trace;
  /** The leader in this process has acknowledged a renewal that reached its lessor at `askedMs` of true time. */
  readonly onAcknowledged: (id: bigint, askedMs: number, epoch: number) => void;
  /** This server has applied entries. */
  readonly onApplied: (state: StateMachine) => void;
  /** This server replaces its state by a snapshot while it runs. */
  readonly onLoaded: () => void;
  /** The process has ended by itself, as `serve` does when its server fails or cannot start. */
  readonly onExit: (process: ServerProcess, error: Error) => void;
  readonly trueMs: () => number;
}

/** One run of the production server, on the clock, network and engine of the simulation. */
export class ServerProcess {
  readonly name: string;
  readonly address: string;
  readonly clock: NodeClock;
  /** Set once it is open: then it answers, and its state can be examined. */
  server: Server | undefined;
  readonly #options: ServerProcessOptions;
  #closingFromMs: number | undefined;
  #killedMs: number | undefined;
  #isStarted = false;

  constructor(options: ServerProcessOptions) {
    this.#options = options;
    this.name = options.name;
    this.address = `${options.host}:${clientPort}`;
    this.clock = options.clock;
  }

  /** When its orderly stop began, in true time; Infinity before. */
  get closingFromMs(): number {
    return this.#closingFromMs ?? Infinity;
  }

  /** How long its orderly stop has taken, in true time. */
  get closingMs(): number {
    return this.#closingFromMs === undefined ? 0 : (this.#killedMs ?? this.#options.trueMs()) - this.#closingFromMs;
  }

  /** Whether it has started, and is not stopping. */
  get isServing(): boolean {
    return this.#isStarted && this.#closingFromMs === undefined && !this.clock.stopped;
  }

  /** Whether it runs an older version. */
  get isOlder(): boolean {
    return this.#options.older !== undefined;
  }

  get leads(): boolean {
    return !this.clock.dead && this.server?.leads === true;
  }

  start(): void {
    this.#open().catch((error: Error) => this.#ended(error));
  }

  /** An orderly stop. Resolves when the process has ended. */
  async close(): Promise<void> {
    // A second fault may stop a process that is stopping.
    this.#closingFromMs ??= this.#options.trueMs();
    await this.server?.close();
  }

  /** Like kill -9: no callback runs any more. */
  kill(): void {
    this.clock.dead = true;
    this.#killedMs ??= this.#options.trueMs();
    this.#options.network.crash(this.name);
  }

  async #open(): Promise<void> {
    const { name, host, flags, older, maxPendingCommands, clock, random, openEngine, trace } = this.#options;
    const network = this.#options.network.at(name, clock);
    const engine = await openEngine();
    const server = await Server.open({
      config: configOf(name, host, flags),
      engine,
      maxPendingCommands,
      engineHealth: new EngineHealth({ onChange: () => {}, onAppendTrouble: () => {} }),
      log: loggerOf((text) => trace.note(name, () => text)),
      clock,
      random: randomOf(random),
      passwords: new PlainPasswords(),
      network: older === undefined ? network : olderNetwork(network, older),
    });
    if (older !== undefined) withoutSettingLimits(server.state);
    this.server = server;
    this.#observeRenewals(server);
    this.#observeState(server.state);
    void server.failed.then((error) => this.#ended(error));
    await server.start();
    this.#isStarted = true;
  }

  /** A server that is being stopped may fail at it. */
  #ended(error: Error): void {
    if (!this.clock.dead && this.#closingFromMs === undefined) this.#options.onExit(this, error);
  }

  #observeState(state: StateMachine): void {
    const { onApplied, onLoaded } = this.#options;
    onApplied(state);
    const replaceWith = state.replaceWith.bind(state);
    state.replaceWith = (newer) => {
      replaceWith(newer);
      onLoaded();
    };
    const apply = state.apply.bind(state);
    state.apply = (entry, isWanted) => {
      const applied = apply(entry, isWanted);
      onApplied(state);
      return applied;
    };
  }

  /** Reports each acknowledgement at the moment when the lessor gives it. */
  #observeRenewals({ driver, state }: Server): void {
    const { trueMs, onAcknowledged } = this.#options;
    const renew = driver.renew.bind(driver);
    driver.renew = (id, by) => {
      const askedMs = trueMs();
      const { epoch } = state;
      const answered = (ttlMs: number): number => {
        if (ttlMs > 0) onAcknowledged(id, askedMs, epoch);
        return ttlMs;
      };
      const outcome = renew(id, by);
      if (outcome === undefined) return undefined;
      return typeof outcome === 'number' ? answered(outcome) : outcome.then(answered);
    };
  }
}

const configs = new Map<string, ServerConfig>();

function configOf(name: string, host: string, flags: readonly string[]): ServerConfig {
  const argv = ['--name', name, '--engine', 'memory', '--listen-client-urls', `http://${host}:${clientPort}`, ...flags];
  const key = argv.join(' ');
  const known = configs.get(key);
  if (known !== undefined) return known;
  const outcome = parseServerConfig({ argv, env: {} });
  if (outcome.kind !== 'config') throw new Error(`the configuration of ${name} is invalid: ${key}`);
  configs.set(key, outcome.config);
  return outcome.config;
}

function randomOf(random: SeededRandom): Random {
  return { bytes: (count) => random.bytes(count), fraction: () => random.next() };
}

function loggerOf(note: (text: string) => void): Logger {
  const line = (fields: object, message?: string): void => note(`${message ?? ''} ${JSON.stringify(fields)}`);
  return { debug: () => {}, info: line, warn: line, error: line, isLevelEnabled: () => false };
}
