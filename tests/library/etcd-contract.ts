import { etcdBackend } from 'tenure/etcd';
import { backendConformance } from 'tenure/testing';
import { afterAll, describe, inject, test } from 'vitest';
import { etcdServerKinds } from './etcd-servers.ts';
import type { EtcdServerKind } from './etcd-servers.ts';

let prefixes = 0;

/** The contract of the library's etcd backend on a server of this kind, if it is installed. */
export function describeEtcdContract(name: EtcdServerKind['name'], rounds: 'all' | 'few'): void {
  const kinds = etcdServerKinds.filter((kind) => kind.name === name && kind.isThere());
  describe.each(kinds)('etcdBackend on $name', (kind) => {
    backendConformance(
      async () => {
        const server = await kind.start();
        const prefix = `leases/${++prefixes}/`;
        return {
          open: () => etcdBackend({ client: { endpoints: server.endpoint }, prefix }),
          killConnections: async () => {
            await server.kill();
            await server.start();
          },
          dispose: () => server.dispose(),
        };
      },
      {
        framework: { describe, test, afterAll },
        hints: ['came', 'updated', 'left', 'expired'],
        hooks: ['killConnections'],
        seed: inject('seed'),
        rounds,
      },
    );
  });
}
