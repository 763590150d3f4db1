// Instances of a service register their addresses, and callers follow the list. One process plays all parts:
// ENDPOINT=127.0.0.1:2379 node examples/dist/service-registry.js
import { createLeaseManager } from 'tenure';
import type { Membership } from 'tenure';
import { etcdBackend } from 'tenure/etcd';

const backend = etcdBackend({ client: { endpoints: process.env['ENDPOINT'] ?? '127.0.0.1:2379' } });
const ttlMs = 10_000; // an instance that dies is off the list after so long

/** Called by an instance when it starts; disposing of the membership takes it off the list at once. */
async function register(id: string, url: string): Promise<Membership> {
  const leases = createLeaseManager({ backend, holder: id, ttlMs, releaseOn: ['SIGTERM', 'SIGINT'] });
  return await leases.membership('checkout', { metadata: { url } });
}

/** Called by a client of the service: it follows the group and is never one of its members. */
async function follow(): Promise<Membership> {
  const leases = createLeaseManager({ backend, holder: 'caller' });
  return await leases.membership('checkout', { eligible: () => false });
}

const first = await register('checkout-1', 'http://10.0.0.1:8080');
const second = await register('checkout-2', 'http://10.0.0.2:8080');
const registry = await follow();

for await (const { snapshot, removed } of registry.watch()) {
  console.log('there are:', snapshot.members.map(({ id, metadata }) => `${id} at ${metadata['url']}`).join(', '));
  for (const { id } of removed) console.log('went away:', id);
  if (snapshot.members.length === 0) break;
  const leaving = snapshot.members.length === 2 ? first : second;
  await leaving[Symbol.asyncDispose]();
}
await registry[Symbol.asyncDispose]();
await backend.close();
