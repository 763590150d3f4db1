import type { TlsOptions } from '../tls/tls-options.ts';
import type { AuthTokenSetting } from './auth-token.ts';
import type { AutoCompaction } from './auto-compaction.ts';
import type { ListenUrl } from './listen-url.ts';

export type EngineName = 'file' | 'memory' | `postgres://${string}` | `postgresql://${string}` | `etcd://${string}`;
export type ReadMode = 'log' | 'lease';
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** How clients connect at the https:// addresses. */
export interface ClientTlsConfig {
  /** With '' for the names of a certificate and a key that the server makes. */
  readonly options: TlsOptions;
  /** Undefined: the certificate is given. */
  readonly selfSigned: { readonly validityYears: number } | undefined;
  /** The common name of a client's certificate is told to services. */
  readonly namesCaller: boolean;
}

/** How servers connect to each other at https:// addresses. */
export interface PeerTlsConfig {
  /** With '' for the names of files that are not given, or that the server makes. */
  readonly options: TlsOptions;
  /** Undefined: no certificate is made. */
  readonly selfSigned: { readonly validityYears: number } | undefined;
  /** The certificate of another server may be any. */
  readonly isUnverified: boolean;
}

/** All settings of a server, checked and frozen. Created only by `parseServerConfig`. */
export interface ServerConfig {
  /** The member's name, as MemberList shows it. */
  readonly name: string;
  /** Undefined: the log may belong to any cluster, or to none yet. */
  readonly clusterId: bigint | undefined;
  readonly engine: EngineName;
  /** On PostgreSQL: the schema that holds the log. */
  readonly engineSchema: string;
  /** On etcd: it serves only this log. */
  readonly engineDedicated: boolean;
  /** On etcd: PEM files; '' for none. Uses TLS if any is given. */
  readonly engineCacert: string;
  readonly engineCert: string;
  readonly engineKey: string;
  /** On etcd: the user of this server; '' when not given. The file takes precedence over the password. */
  readonly engineUser: string;
  readonly enginePassword: string;
  readonly enginePasswordFile: string;
  /** The proof that a linearizable read on a shared log is current: a later append, or the leader's clock. */
  readonly reads: ReadMode;
  /** Absolute. Made 0700 by the engine that uses it. */
  readonly dataDir: string;
  /** At least one. */
  readonly listenClientUrls: readonly ListenUrl[];
  /** Undefined: no listen URL has https. */
  readonly clientTls: ClientTlsConfig | undefined;
  /** Empty: the listen URLs, with the bound ports. */
  readonly advertiseClientUrls: readonly string[];
  /** On a shared log: addresses for other servers alone. Empty: they use those for clients. */
  readonly listenPeerUrls: readonly ListenUrl[];
  /** Empty: the listen URLs for servers, with the bound ports. */
  readonly initialAdvertisePeerUrls: readonly string[];
  readonly peerTls: PeerTlsConfig;
  /** Origins of web pages that may call the API over HTTP; '*' for all. */
  readonly cors: readonly string[];
  /** Names by which HTTP clients may reach an address without TLS; '*' for all. */
  readonly hostWhitelist: readonly string[];
  /** Estimated bytes of the state in memory at which the NOSPACE alarm is raised; never 0. */
  readonly quotaBackendBytes: number;
  readonly maxRequestBytes: number;
  readonly maxTxnOps: number;
  /** Undefined: history is kept until a client compacts it, and a NOSPACE alarm stays until a client disarms it. */
  readonly autoCompaction: AutoCompaction | undefined;
  readonly authToken: AuthTokenSetting;
  /** Of a simple token that is not used. */
  readonly authTokenTtlMs: number;
  /** From 4 to 12: see ScryptHasher. */
  readonly bcryptCost: number;
  readonly minLeaseTtlMs: number;
  readonly heartbeatIntervalMs: number;
  /** On a shared log: after this time without a message of the leader a server claims. */
  readonly electionTimeoutMs: number;
  readonly watchProgressNotifyIntervalMs: number;
  /** A snapshot is due when this many entries ... */
  readonly snapshotCount: number;
  /** ... or this many bytes of log have been appended since the last one. */
  readonly snapshotLogBytes: number;
  readonly logLevel: LogLevel;
  /** Absolute; '' for none. */
  readonly auditLog: string;
}
