import type { Cluster } from '../cluster/cluster.ts';
import type { ClusterMember } from '../cluster/cluster-member.ts';
import { LastingWatch } from '../cluster/lasting-watch.ts';
import { SeededRandom } from '@tenure/test-support';
import { readFullHistory } from './full-history.ts';
import { checkHeaders } from './header-check.ts';
import { HeaderClient } from './header-client.ts';
import type { HistoryLog } from './history-log.ts';
import { keyModel, operationsByKey } from './key-model.ts';
import { KvClient, type KvClientOptions } from './kv-client.ts';
import { checkLeases } from './lease-check.ts';
import type { LeaseOperation } from './lease-operation.ts';
import { LeaseClient, type SharedLease } from './lease-client.ts';
import { checkLinearizable } from './linearizability.ts';
import { RecordedHistory, timed } from './recorded-history.ts';
import { checkRevisions } from './revision-check.ts';

const kvClients = 5;
const leaseClients = 3;
/** The number of violations of a kind to print; the total is printed too. */
const reportedViolations = 5;

export interface HistoryRunOptions {
  readonly seed: number;
  /** The servers that clients may ask; all running ones by default. */
  readonly members?: () => readonly ClusterMember[];
}

/** Concurrent clients of a cluster whose every call is recorded, and the checks of the recorded history. */
export class HistoryRun {
  readonly history = new RecordedHistory();
  readonly #cluster: Cluster;
  readonly #seed: number;
  readonly #watches: readonly LastingWatch[];
  readonly #done: Promise<unknown>;
  #isOver = false;
  #failure: unknown;

  constructor(cluster: Cluster, options: HistoryRunOptions) {
    this.#cluster = cluster;
    this.#seed = options.seed;
    const members = options.members ?? (() => cluster.members);
    this.#watches = cluster.members.map((_, at) => new LastingWatch(() => cluster.members, at));
    const { history } = this;
    const optionsOf = (number: number): KvClientOptions => {
      return { number, members, history, random: new SeededRandom(options.seed * 1_000 + number) };
    };
    const pool = new Map<bigint, SharedLease>();
    const clients = [
      ...Array.from({ length: kvClients }, (_, at) => new KvClient(optionsOf(at + 1))),
      ...Array.from({ length: leaseClients }, (_, at) => new LeaseClient(optionsOf(at + 101), pool)),
      new HeaderClient(optionsOf(201)),
    ];
    const run = async (client: (typeof clients)[number]): Promise<void> => client.run(() => this.#isOver);
    this.#done = Promise.all(clients.map((client) => run(client).catch((error: unknown) => (this.#failure ??= error))));
  }

  /** Resolves when so many more calls about keys were answered. */
  async progress(calls: number, withinMs = 60_000): Promise<void> {
    const target = this.history.known + calls;
    const untilMs = performance.now() + withinMs;
    while (this.history.known < target) {
      if (this.#failure !== undefined) throw new Error('a client failed', { cause: this.#failure });
      if (performance.now() > untilMs) throw new Error(`${this.history.known} of ${target} calls in ${withinMs} ms`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Ends the clients. May be called at any time, and repeatedly. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#done;
    for (const watch of this.#watches) watch.stop();
  }

  /**
   * Ends the clients and throws unless their history is linearizable by both checks, the answers about leases are
   * consistent, no revision went back, every watch saw the whole history once and in order, and all servers have the
   * same content.
   */
  async finish(): Promise<void> {
    this.#isOver = true;
    await this.#done;
    if (this.#failure !== undefined) throw new Error('a client failed', { cause: this.#failure });
    const leader = await this.#cluster.leader();
    const last = await this.#writeEnd(leader);
    const log = await readFullHistory(leader, last);
    await this.#checkWatches(log);
    await this.#cluster.checkSameState();
    const { kv, leases, headers } = this.history;
    const unanswered = kv.filter(({ outcome }) => outcome.kind === 'unknown').length;
    console.log(
      `${kv.length} calls about keys, ${unanswered} without an answer, ${leases.length} about leases, ` +
        `${headers.length} headers, ${last} revisions`,
    );
    report('the order of revisions', checkRevisions(kv, log));
    report('the leases', checkLeases([...leases, ...this.#endsSeen(log)]));
    report('the revisions in headers', checkHeaders(headers, { acrossClients: true }));
    this.#checkEachKey();
  }

  /** A last write, which ends the checked history; returns its revision. */
  async #writeEnd(member: ClusterMember): Promise<number> {
    const value = `of run ${this.#seed}`;
    const { outcome, ...times } = await timed(() => member.put('end', value));
    if (outcome.kind !== 'known') throw new Error('the last write was not acknowledged');
    const output = { revision: outcome.output, changed: true, seen: new Map() };
    const input = { kind: 'put', writes: [['end', value]] } as const;
    this.history.kv.push({ client: 0, server: member.name, input, outcome: { kind: 'known', output }, ...times });
    return outcome.output;
  }

  async #checkWatches(log: HistoryLog): Promise<void> {
    const told = log.events.map(({ revision, key, version }) => `${revision} ${key} ${version?.value}`).join('\n');
    for (const watch of this.#watches) {
      await watch.seen(({ revision }) => revision >= log.head);
      watch.check([]);
      const seen = watch.events.filter(({ revision }) => revision <= log.head);
      const text = seen.map(({ revision, key, value }) => `${revision} ${key} ${value}`).join('\n');
      if (text !== told) throw new Error('a watch saw another history than the leader reports');
      watch.stop();
    }
  }

  /** The times at which the watches saw the ends of leases. */
  #endsSeen(log: HistoryLog): LeaseOperation[] {
    const found: LeaseOperation[] = [];
    for (const { events } of this.#watches) {
      for (const { revision, key, value, atMs } of events) {
        const id = log.versionAt(key, revision - 1)?.lease ?? 0n;
        if (value !== undefined || id === 0n) continue;
        const outcome = { kind: 'known', output: { alive: false } } as const;
        found.push({ client: 0, input: { kind: 'sawEnd', id }, outcome, calledMs: atMs, returnedMs: atMs });
      }
    }
    return found;
  }

  #checkEachKey(): void {
    for (const [key, operations] of operationsByKey(this.history.kv)) {
      const verdict = checkLinearizable(keyModel, operations);
      if (verdict.kind === 'violation') throw new Error(`${key} is not linearizable: ${verdict.explanation}`);
      if (verdict.kind === 'undecided') throw new Error(`${key}: its ${operations.length} calls could not be checked`);
    }
  }
}

function report(what: string, violations: readonly string[]): void {
  if (violations.length === 0) return;
  const first = violations.slice(0, reportedViolations).join('\n');
  throw new Error(`${violations.length} violations of ${what}, of which:\n${first}`);
}
