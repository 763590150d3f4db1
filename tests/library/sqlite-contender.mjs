// One of several processes that increment a file under a lease of tenure/sqlite: it reads, waits, and writes one more.
// Without the lease increments would be lost. It prints its sequence numbers as one line of JSON. Arguments: the
// database, the file, how often.
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import Database from 'libsql';
import { queuePosition } from 'tenure';
import { sqliteBackend } from 'tenure/sqlite';

const [path, counter, times] = process.argv.slice(2);
const database = new Database(path);
const backend = sqliteBackend({ database });
await backend.migrate();
const { signal } = new AbortController();
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const sequences = [];
for (let turn = 0; turn < Number(times); turn++) {
  const claim = { name: 'lease/counter', id: randomUUID(), holder: `${process.pid}`, mode: 'exclusive', permits: 1 };
  const asked = { ...claim, ttlMs: 60_000, data: '' };
  const { sequence, entries } = await backend.enter(asked, { onlyIfHolds: false, signal });
  let line = entries;
  while (!queuePosition(line, { ...asked, sequence }).holds) {
    await pause(2);
    line = await backend.list(asked.name, signal);
  }
  const count = Number(readFileSync(counter, 'utf8'));
  await pause(1);
  writeFileSync(counter, `${count + 1}`);
  sequences.push(`${sequence}`);
  await backend.leave({ name: asked.name, id: asked.id, sequence }, signal);
}
await backend.close();
database.close();
console.log(JSON.stringify(sequences));
