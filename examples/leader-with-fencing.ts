// A leader whose writes are refused once it has lost the leadership, and which then campaigns again:
// ENDPOINT=127.0.0.1:2379 node examples/dist/leader-with-fencing.js
import { createLeaseManager } from 'tenure';
import type { Leadership } from 'tenure';
import { etcdBackend, EtcdClient, operation } from 'tenure/etcd';
import { requireGuarded } from 'tenure/guard';

const etcd = new EtcdClient({ endpoints: process.env['ENDPOINT'] ?? '127.0.0.1:2379' });
const backend = etcdBackend({ client: etcd });

/** The server itself checks that the leader still leads, in the transaction of the write. */
async function publish(leadership: Leadership, config: string): Promise<void> {
  const guard = backend.guard(leadership);
  const { succeeded } = await etcd.kv.txn().if(guard).do(operation.put('app/config', config)).commit();
  requireGuarded(succeeded, leadership);
}

await using leases = createLeaseManager({ backend, holder: 'node-1', releaseOn: ['SIGTERM', 'SIGINT'] });
const tokens: bigint[] = [];

const result = await leases.election('publisher').run(async (leadership, signal) => {
  tokens.push(leadership.fencingToken);
  await publish(leadership, `term ${tokens.length}`);
  console.log(`term ${tokens.length}: published`);
  if (tokens.length > 1) return 'resigned';

  // An operator deposes the leader by deleting its entry. The next renewal notices it, and the signal aborts.
  await etcd.kv.delete({ prefix: 'tenure/election/publisher/' });
  await leadership.renew().catch(() => {});
  console.log('term 1: told to stop:', signal.aborted);
  await publish(leadership, 'too late').catch((error: unknown) => console.log(`term 1: ${String(error)}`));
  return 'what is done after a loss counts for nothing';
});

console.log(result, 'and the token has grown:', tokens[1]! > tokens[0]!);
console.log('the configuration is of', (await etcd.kv.getOne('app/config'))?.value);
etcd.close();
