import type { AuditSink } from './api/audit-record.ts';
import type { ServingTransport } from './api-server.ts';
import type { PasswordHasher } from './auth/password-hasher.ts';
import type { OpenLeaderStream } from './cluster/follower/leader-stream.ts';
import type { ServerConfig } from './config/server-config.ts';
import type { EngineHealth } from './engines/engine-health.ts';
import type { LogEngine } from './engines/log-engine.ts';
import type { Logger } from './logging/logger.ts';
import type { Random } from './random/random.ts';
import type { Clock } from './time/clock.ts';
import type { PeerTls } from './open-peer-tls.ts';
import type { ClientTls } from './transport/client-tls.ts';
import type { GrpcServerOptions } from './transport/transport.ts';

export interface RunningServer {
  /** The URLs for clients, with the actual ports. */
  readonly urls: readonly string[];
  /** Ends all streams, answers the accepted requests, and closes the log. Resolves within about 5 s. Idempotent. */
  close(): Promise<void>;
  /** Resolves with the reason when the server can't continue; the process should then exit without calling close. */
  readonly failed: Promise<Error>;
}

export interface ServerOptions {
  readonly config: ServerConfig;
  /** Closed with the server. */
  readonly engine: LogEngine;
  readonly engineHealth: EngineHealth;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random: Random;
  /** Where an address has https. */
  readonly clientTls?: ClientTls | undefined;
  /** For https:// addresses of other servers. Closed with the server. */
  readonly peerTls?: PeerTls | undefined;
  /** Sockets by default. */
  readonly network?: ServerNetwork;
  /** Where requests are recorded; nowhere by default. Closed with the server. */
  readonly audit?: (AuditSink & { close(): Promise<void> }) | undefined;
  /** Hashes passwords on the threads of this process by default. */
  readonly passwords?: PasswordHasher;
  /** Limit on proposals that wait for the log; 65,536 by default. The simulation sets a low one. */
  readonly maxPendingCommands?: number | undefined;
}

/** The transports from clients and to the leader. */
export interface ServerNetwork {
  readonly createTransport: (options: GrpcServerOptions) => ServingTransport;
  readonly openLeaderStream?: OpenLeaderStream;
}
