import type { AutoCompaction } from './auto-compaction.ts';
import type { ListenUrl } from './listen-url.ts';

export type EngineName = 'file' | 'memory' | `postgres://${string}` | `postgresql://${string}` | `etcd://${string}`;
export type ReadMode = 'log' | 'lease';
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Everything that can be chosen at start, checked and frozen. Made by `parseServerConfig` alone. */
export interface ServerConfig {
  /** The member's name, as MemberList shows it. */
  readonly name: string;
  /** Undefined: the log may be of any cluster, or of none yet. */
  readonly clusterId: bigint | undefined;
  readonly engine: EngineName;
  /** On PostgreSQL: the schema that holds the log. */
  readonly engineSchema: string;
  /** On etcd: nothing else is kept there. */
  readonly engineDedicated: boolean;
  /** On etcd: PEM files; '' for none, and TLS if any is given. */
  readonly engineCacert: string;
  readonly engineCert: string;
  readonly engineKey: string;
  /** On etcd: who this server is there; '' for what was not given. The file wins over the password. */
  readonly engineUser: string;
  readonly enginePassword: string;
  readonly enginePasswordFile: string;
  /** What shows that a linearizable read on a shared log is current: a later append, or the leader's clock. */
  readonly reads: ReadMode;
  /** Absolute. Made 0700 by the engine that uses it. */
  readonly dataDir: string;
  /** At least one. */
  readonly listenClientUrls: readonly ListenUrl[];
  /** Empty: the listen URLs, with the ports that were bound. */
  readonly advertiseClientUrls: readonly string[];
  /** Estimated bytes of the state in memory at which the NOSPACE alarm is raised; never 0. */
  readonly quotaBackendBytes: number;
  readonly maxRequestBytes: number;
  readonly maxTxnOps: number;
  /** Undefined: history is kept until a client compacts it, and an alarm for space stands until one ends it. */
  readonly autoCompaction: AutoCompaction | undefined;
  readonly minLeaseTtlMs: number;
  readonly heartbeatIntervalMs: number;
  /** On a shared log: how long a server hears nothing of a leader before it claims. */
  readonly electionTimeoutMs: number;
  readonly watchProgressNotifyIntervalMs: number;
  /** A snapshot is due when this many entries ... */
  readonly snapshotCount: number;
  /** ... or this many bytes of log have been appended since the last one. */
  readonly snapshotLogBytes: number;
  readonly logLevel: LogLevel;
}
