// Waits for one hint of tenure/postgres, prints it and closes nothing: the process should end by itself.
import { Client, Pool } from 'pg';
import { postgresBackend } from 'tenure/postgres';

const [connectionString, schema] = process.argv.slice(2);
const pool = new Pool({ connectionString, allowExitOnIdle: true });
const backend = postgresBackend({ pool, schema, listen: () => new Client({ connectionString }) });
const { signal } = new AbortController();
const key = { name: 'lease/listener', id: `${process.pid}`, sequence: 0n };

// Until the hint comes the test itself keeps the process running; the watch does not.
const stay = setInterval(() => backend.leave(key, signal), 1_000);
await new Promise((resolve) => {
  backend.watch(key.name, resolve);
});
clearInterval(stay);
console.log('hinted');
