/** The options that a case may set for its server, of any kind. Left out: the server's default. */
export interface ServerOptions {
  readonly quotaBackendBytes?: number;
  readonly maxRequestBytes?: number;
  readonly maxTxnOps?: number;
  readonly progressNotifyIntervalMs?: number;
  /** The origins whose pages may read answers; all or none by default. */
  readonly cors?: readonly string[];
  /** The names by which clients may reach the server. */
  readonly hostWhitelist?: readonly string[];
  /** Low for cases that log in often. */
  readonly bcryptCost?: number;
  /** How long a simple token lives after its last use. */
  readonly simpleTokenTtlSeconds?: number;
  /** Tokens are signed with RS256, with a key pair of the server's own, and live this long. */
  readonly jwtTtlSeconds?: number;
}

export type ServerKind = 'etcd' | 'tenure';

export interface RunningServer {
  readonly kind: ServerKind;
  /** host:port that takes gRPC without TLS. */
  readonly address: string;
  /** The server's name as given by --name. */
  readonly name: string;
  /** The only entry of the member's client URLs. */
  readonly advertisedClientUrl: string;
  readonly pid: number;
  /** Resolves when the process is gone and its files are removed. */
  stop(): Promise<void>;
}

export const memberName = 'conformance';
export const advertisedClientUrl = 'http://member.example:2379';
