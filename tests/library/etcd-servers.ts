import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EtcdProcess, hasEtcd, ServeProcess } from '@tenure/test-support';

/** A real etcd v3 server, which can be killed and restarted with its data on the same port. */
export interface EtcdServer {
  readonly endpoint: string;
  kill(): Promise<void>;
  start(): Promise<void>;
  dispose(): Promise<void>;
}

export interface EtcdServerKind {
  readonly name: 'etcd' | 'Tenure';
  readonly isThere: () => boolean;
  readonly start: () => Promise<EtcdServer>;
}

/** The two kinds of servers that the library's etcd backend supports. */
export const etcdServerKinds: readonly EtcdServerKind[] = [
  { name: 'etcd', isThere: hasEtcd, start: () => EtcdProcess.start() },
  { name: 'Tenure', isThere: () => true, start: () => TenureServer.start() },
];

class TenureServer implements EtcdServer {
  readonly #folder = mkdtempSync(join(tmpdir(), 'tenure-library-'));
  #process: ServeProcess | undefined;
  #address = '127.0.0.1:0';

  static async start(): Promise<TenureServer> {
    const server = new TenureServer();
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.dispose();
      throw error;
    }
  }

  get endpoint(): string {
    return this.#address;
  }

  async start(): Promise<void> {
    const flags = ['--data-dir', this.#folder, '--listen-client-urls', `http://${this.#address}`];
    this.#process = new ServeProcess(['serve', ...flags]);
    const [url = ''] = await this.#process.ready();
    this.#address = new URL(url).host;
  }

  async kill(): Promise<void> {
    await this.#process?.end('SIGKILL');
  }

  async dispose(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
