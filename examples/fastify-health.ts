// A fastify server that is ready while its process leads:
//   node examples/dist/fastify-health.js
import { fastify } from 'fastify';
import { createLeaseManager } from 'tenure';
import { memoryBackend } from 'tenure/memory';
import { leaderHealth } from './leader-health.ts';

await using leases = createLeaseManager({ backend: memoryBackend(), holder: 'replica-1' });
const leadership = leases.requestLease('leader');

const app = fastify();
app.get('/live', () => 'alive');
app.get('/ready', async (_request, reply) => {
  const { status, body } = leaderHealth(leadership);
  return await reply.code(status).send(body);
});
const address = await app.listen({ port: 0, host: '127.0.0.1' });

const probe = async (path: string): Promise<number> => (await fetch(address + path)).status;
console.log('standing by:', await probe('/live'), await probe('/ready'));
await leadership.acquire({ wait: 'forever' });
console.log('leading:', await probe('/live'), await probe('/ready'));
await leadership.release();
console.log('resigned:', await probe('/live'), await probe('/ready'));
await app.close();
