import { grpcOverheadBytes, listenAt, type ServingTransport } from './api-server.ts';
import type { Cluster } from './cluster/cluster.ts';
import type { ServerConfig } from './config/server-config.ts';
import { connectionLimit, leastConnections, maxPeerConnections } from './connection-limit.ts';
import type { Logger } from './logging/logger.ts';
import type { PeerTls } from './open-peer-tls.ts';
import type { HttpHandler } from '@tenure/grpc-server';
import type { GrpcServerOptions } from './transport/transport.ts';

/** Streams of one connection: a server needs one. */
const maxStreamsOfServer = 16;
/** Frames of one connection in five seconds: a server sends a PING each second, and its SETTINGS once. */
const maxPingsOfServer = 100;
const maxSettingsOfServer = 10;

export interface PeerPortOptions {
  readonly cluster: Pick<Cluster, 'routesForServers' | 'linkPath'>;
  readonly config: Pick<ServerConfig, 'listenPeerUrls' | 'initialAdvertisePeerUrls' | 'maxRequestBytes'>;
  readonly log: Logger;
  readonly tls: PeerTls | undefined;
  readonly createTransport: (options: GrpcServerOptions) => ServingTransport;
}

/**
 * The addresses that are for other servers alone. They have a transport of their own, whose limits clients cannot
 * exhaust, and serve nothing but the streams between servers.
 */
export class PeerPort {
  readonly #options: PeerPortOptions;
  readonly #transport: ServingTransport;
  #urls: readonly string[] = [];

  constructor(options: PeerPortOptions) {
    const { cluster, config, log, createTransport } = options;
    this.#options = options;
    this.#transport = createTransport({
      routes: cluster.routesForServers,
      onHttp: nothingHere,
      log,
      limits: {
        maxReceiveBytes: config.maxRequestBytes + grpcOverheadBytes,
        maxConnections: connectionLimit(maxPeerConnections, leastConnections),
        maxConcurrentStreams: maxStreamsOfServer,
        maxPingsPerSweep: maxPingsOfServer,
        maxSettingsPerSweep: maxSettingsOfServer,
      },
      peerPath: cluster.linkPath,
      callers: 'servers',
    });
  }

  /** The addresses at which other servers reach this one. Known once it listens. */
  get urls(): readonly string[] {
    const { initialAdvertisePeerUrls } = this.#options.config;
    return initialAdvertisePeerUrls.length > 0 ? initialAdvertisePeerUrls : this.#urls;
  }

  async listen(): Promise<void> {
    const { config, tls } = this.#options;
    this.#urls = await listenAt(this.#transport, config.listenPeerUrls, tls?.serve);
  }

  close(options: { readonly graceMs: number }): Promise<void> {
    return this.#transport.close(options);
  }
}

/** Health, version and metrics are for clients. */
const nothingHere: HttpHandler = async () => ({ status: 404, headers: {}, body: '' });
