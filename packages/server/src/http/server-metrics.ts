import type { LeaseChange } from '@tenure/core';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { EventLoopDelay } from './event-loop-delay.ts';
import { processMetrics } from './process-metrics.ts';

/** Values read at the moment of a scrape. Each call is cheap: a known size. */
export interface MetricSource {
  /** Leases with in-memory deadlines, and checkpointed leases. */
  leasesInMemory(): number;
  leasesCheckpointed(): number;
  watchers(): number;
  watchStreams(): number;
  keys(): number;
  revision(): number;
  compactRevision(): number;
  /** The estimated bytes of the state, which are compared with the quota. */
  stateBytes(): number;
  /** Bytes of the log and its snapshots. */
  logBytes(): number;
  appliedIndex(): number;
  isLeader(): boolean;
}

export interface Append {
  readonly entries: number;
  readonly commands: number;
  readonly bytes: number;
  /** From the start of the append until it was durable. */
  readonly durationMs: number;
}

const secondsBuckets = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
const commandBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
const byteBuckets = [256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304];

/**
 * The server's metrics. Frequent events are plain additions; the histograms, at about 0.1 us per observation, are
 * updated once per batch or expired lease. Prometheus' text is generated only at a scrape. One per server: only the
 * metrics of the process itself are registered globally.
 */
export class ServerMetrics {
  readonly #registry = new Registry();
  readonly #eventLoopDelay: EventLoopDelay;
  readonly #totals = { granted: 0, expired: 0, revoked: 0, renewed: 0, checkpointed: 0 };
  readonly #expiryLag: Histogram;
  readonly #appendSeconds: Histogram;
  readonly #appendCommands: Histogram;
  readonly #appendBytes: Histogram;
  readonly #applySeconds: Histogram;
  readonly #snapshotSeconds: Histogram;
  readonly #entriesTotal: Counter;
  #scrape: Promise<string> | undefined;

  constructor(options: { version: string; source: MetricSource; quotaBytes: number }) {
    this.#eventLoopDelay = new EventLoopDelay(this.#registry);
    this.#expiryLag = this.#histogram('lease_expiry_lag_seconds', "From a lease's deadline until its end was applied.");
    this.#appendSeconds = this.#histogram(
      'log_append_duration_seconds',
      'From the start of an append until it was durable.',
    );
    this.#appendCommands = this.#histogram('log_append_batch_commands', 'Commands in one append.', commandBuckets);
    this.#appendBytes = this.#histogram('log_append_batch_bytes', 'Bytes in one append.', byteBuckets);
    this.#applySeconds = this.#histogram('apply_duration_seconds', 'Time to apply one entry to the state.');
    this.#snapshotSeconds = this.#histogram('snapshot_save_duration_seconds', 'Time to write one snapshot.');
    this.#entriesTotal = new Counter({
      name: 'tenure_log_entries_total',
      help: 'Entries appended to the log.',
      registers: [this.#registry],
    });
    this.#registerTotals();
    this.#registerGauges(options.source, options.quotaBytes);
    const info = new Gauge({
      name: 'tenure_build_info',
      help: 'Always 1; the labels say what is running.',
      labelNames: ['version', 'node'],
      registers: [this.#registry],
    });
    info.set({ version: options.version, node: process.version }, 1);
  }

  /** The changes of leases by one entry. Expiries are counted by `leaseExpired`, which knows their lag. */
  leasesChanged(changes: readonly LeaseChange[]): void {
    for (const change of changes) {
      if (change.kind === 'granted') this.#totals.granted += 1;
      else if (change.kind === 'checkpointed') this.#totals.checkpointed += 1;
      else if (change.kind === 'removed' && change.cause === 'revoked') this.#totals.revoked += 1;
    }
  }

  /** Acknowledged renewals. */
  leaseRenewed(count = 1): void {
    this.#totals.renewed += count;
  }

  /** One lease expired, `lagMs` after its deadline. */
  leaseExpired(lagMs: number): void {
    this.#totals.expired += 1;
    this.#expiryLag.observe(Math.max(0, lagMs) / 1000);
  }

  appended(append: Append): void {
    this.#entriesTotal.inc(append.entries);
    this.#appendSeconds.observe(append.durationMs / 1000);
    this.#appendCommands.observe(append.commands);
    this.#appendBytes.observe(append.bytes);
  }

  /** One entry was applied. */
  applied(durationMs: number): void {
    this.#applySeconds.observe(durationMs / 1000);
  }

  snapshotSaved(durationMs: number): void {
    this.#snapshotSeconds.observe(durationMs / 1000);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** All metrics in Prometheus' text format. Scrapes that arrive while one is generated share it. */
  text(): Promise<string> {
    this.#scrape ??= this.#collect().finally(() => {
      this.#scrape = undefined;
    });
    return this.#scrape;
  }

  /** Stops the event-loop monitor. Idempotent. */
  close(): void {
    this.#eventLoopDelay.close();
  }

  async #collect(): Promise<string> {
    const texts = await Promise.all([this.#registry.metrics(), processMetrics().metrics()]);
    return texts.join('\n');
  }

  #registerTotals(): void {
    const totals = this.#totals;
    this.#total('lease_granted_total', 'Leases granted.', () => totals.granted);
    this.#total('lease_expired_total', 'Leases that ended without a renewal in time.', () => totals.expired);
    this.#total('lease_revoked_total', 'Leases that a client revoked.', () => totals.revoked);
    this.#total('lease_renewed_total', 'Renewals acknowledged.', () => totals.renewed);
    this.#total(
      'lease_checkpointed_total',
      'Deadlines of unrenewed leases written to the log.',
      () => totals.checkpointed,
    );
  }

  #registerGauges(source: MetricSource, quotaBytes: number): void {
    this.#gauge('leases_in_memory', 'Leases that are renewed in memory.', () => source.leasesInMemory());
    this.#gauge('leases_checkpointed', 'Leases whose deadline is in the state.', () => source.leasesCheckpointed());
    this.#gauge('watchers', 'Watches that are open.', () => source.watchers());
    this.#gauge('watch_streams', 'Streams that carry watches.', () => source.watchStreams());
    this.#gauge('keys', 'Keys that exist now.', () => source.keys());
    this.#gauge('revision', 'The newest revision.', () => source.revision());
    this.#gauge('compact_revision', 'The oldest revision that can be read.', () => source.compactRevision());
    this.#gauge('state_bytes', 'Estimated size of the state in memory, which the quota limits.', () =>
      source.stateBytes(),
    );
    this.#gauge('quota_bytes', 'Size of the state at which writes are refused.', () => quotaBytes);
    this.#gauge('log_bytes', 'Size of the log and its snapshots.', () => source.logBytes());
    this.#gauge('applied_index', 'Index of the newest entry that was applied.', () => source.appliedIndex());
    this.#gauge('is_leader', 'Whether this server leads: 1 or 0.', () => Number(source.isLeader()));
  }

  #histogram(name: string, help: string, buckets: readonly number[] = secondsBuckets): Histogram {
    return new Histogram({ name: `tenure_${name}`, help, buckets: [...buckets], registers: [this.#registry] });
  }

  #total(name: string, help: string, read: () => number): void {
    const metric = new Counter({
      name: `tenure_${name}`,
      help,
      registers: [],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
    this.#registry.registerMetric(metric);
  }

  #gauge(name: string, help: string, read: () => number): void {
    const metric = new Gauge({
      name: `tenure_${name}`,
      help,
      registers: [],
      collect() {
        this.set(read());
      },
    });
    this.#registry.registerMetric(metric);
  }
}
