import { createLeaseManager } from 'tenure';
import type { LeaseManager } from 'tenure';
import { EtcdClient, etcdBackend } from 'tenure/etcd';
import { expect } from 'vitest';
import { etcdVersion, startEtcd } from '../../conformance/servers/etcd-server.ts';
import type { RunningServer, ServerOptions } from '../../conformance/servers/server-options.ts';
import { startTenure } from '../../conformance/servers/tenure-server.ts';
import { runCommand } from '../running-command.ts';

const timeoutMs = 10_000;
export const leasePrefix = 'tenure/';

/** The servers with users that the library supports, of those that are installed. */
export const userServers = Object.entries({
  Tenure: startTenure,
  ...(etcdVersion() === undefined ? {} : { etcd: startEtcd }),
});

/** Tokens that end within a second, of both kinds. */
export const shortTokens: readonly (readonly [string, ServerOptions])[] = [
  ['random tokens', { simpleTokenTtlSeconds: 1, bcryptCost: 4 }],
  ['signed tokens', { jwtTtlSeconds: 1, bcryptCost: 4 }],
];

/** A server with the users root and ada; ada may read and write under the prefix of the leases. */
export class Users implements AsyncDisposable {
  readonly server: RunningServer;
  readonly #clients: EtcdClient[] = [];

  static async start(start: () => Promise<RunningServer>, { isEnabled = true } = {}): Promise<Users> {
    const users = new Users(await start());
    const add = ['--new-password-stdin'];
    await users.root(['user', 'add', 'root', ...add], 'secret');
    await users.root(['user', 'add', 'ada', ...add], 'secret');
    await users.root(['user', 'grant-role', 'root', 'root']);
    await users.root(['role', 'add', 'leases']);
    await users.root(['role', 'grant-permission', 'leases', 'readwrite', leasePrefix, '--prefix']);
    await users.root(['user', 'grant-role', 'ada', 'leases']);
    if (isEnabled) await users.root(['auth', 'enable']);
    return users;
  }

  private constructor(server: RunningServer) {
    this.server = server;
  }

  /** Runs a command as root, also before authentication is enabled. */
  async root(argv: readonly string[], stdin = ''): Promise<void> {
    const env = { TENURE_ENDPOINTS: this.server.address, TENURE_USER: 'root', TENURE_PASSWORD: 'secret' };
    const { code, err } = await runCommand(argv, { stdin, env });
    expect([code, err], argv.join(' ')).toEqual([0, '']);
  }

  client(): EtcdClient {
    const options = { endpoints: this.server.address, timeoutMs, user: 'ada', password: 'secret' };
    const client = new EtcdClient(options);
    this.#clients.push(client);
    return client;
  }

  leases(ttlMs: number): LeaseManager {
    return createLeaseManager({ backend: etcdBackend({ client: this.client(), prefix: leasePrefix }), ttlMs });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.close();
    await this.server.stop();
  }
}
