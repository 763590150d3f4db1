// One of several processes that count up a file under a lease of tenure/sqlite: reads it, waits, writes one more.
// Without the lease they would lose counts. Prints its tickets as one line of JSON.
// Arguments: the database, the file, how often.
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import Database from 'libsql';
import { standing } from 'tenure';
import { sqliteBackend } from 'tenure/sqlite';

const [path, counter, times] = process.argv.slice(2);
const database = new Database(path);
const backend = sqliteBackend({ database });
await backend.migrate();
const { signal } = new AbortController();
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const tickets = [];
for (let turn = 0; turn < Number(times); turn++) {
  const claim = { name: 'lease/counter', id: randomUUID(), holder: `${process.pid}`, mode: 'exclusive', permits: 1 };
  const asked = { ...claim, ttlMs: 60_000, data: '' };
  const { ticket, entries } = await backend.enter(asked, { onlyIfHolds: false, signal });
  let line = entries;
  while (!standing(line, { ...asked, ticket }).holds) {
    await pause(2);
    line = await backend.list(asked.name, signal);
  }
  const count = Number(readFileSync(counter, 'utf8'));
  await pause(1);
  writeFileSync(counter, `${count + 1}`);
  tickets.push(`${ticket}`);
  await backend.leave({ name: asked.name, id: asked.id, ticket }, signal);
}
await backend.close();
database.close();
console.log(JSON.stringify(tickets));
