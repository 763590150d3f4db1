// An express server that is ready while its process leads:
//   node examples/dist/express-health.js
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { createLeaseManager } from 'tenure';
import { memoryBackend } from 'tenure/memory';
import { leaderHealth } from './leader-health.ts';

await using leases = createLeaseManager({ backend: memoryBackend(), holder: 'replica-1' });
const leadership = leases.requestLease('leader');

const app = express();
app.get('/live', (_request, response) => void response.send('alive'));
app.get('/ready', (_request, response) => {
  const { status, body } = leaderHealth(leadership);
  response.status(status).json(body);
});
const server = app.listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;

const probe = async (path: string): Promise<number> => (await fetch(`http://127.0.0.1:${port}${path}`)).status;
console.log('standing by:', await probe('/live'), await probe('/ready'));
await leadership.acquire({ wait: 'forever' });
console.log('leading:', await probe('/live'), await probe('/ready'));
await leadership.release();
console.log('resigned:', await probe('/live'), await probe('/ready'));
server.close();
server.closeAllConnections();
