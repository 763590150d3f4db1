/**
 * A process that does nothing but write a log, for tests that kill it or break its disk. It is started as
 * `node log-writer.mjs JSON`, says what happened in one line each, and every line is out before the next step begins:
 *
 *     open INDEX          the log is open and ends there
 *     acked INDEX         an append was acknowledged
 *     saved INDEX         a snapshot was
 *     trimmed INDEX       a trim was
 *     failed CODE TEXT    a call was refused; after the first one every further kind of call is tried too
 *     done                nothing is left to do; with `stay` it waits to be killed
 */
import { writeSync } from 'node:fs';
import { openFileEngine } from '../../packages/server/dist/engines/file/file-engine.js';

const { folder, appends, perAppend, entryBytes, snapshotEvery, stay, limits } = JSON.parse(process.argv[2]);

const say = (line) => writeSync(1, `${line}\n`);

function entry(index) {
  return Buffer.alloc(entryBytes, `entry ${index} `);
}

async function* state(index) {
  for (let chunk = 0; chunk < 8; chunk++) yield Buffer.alloc(20_000, `state ${index}.${chunk} `);
}

async function write(engine) {
  let tail = await engine.tail();
  say(`open ${tail.index}`);
  for (let count = 1; count <= appends; count++) {
    const batch = Array.from({ length: perAppend }, (_, at) => entry(tail.index + 1 + at));
    tail = await engine.append(batch, tail);
    say(`acked ${tail.index}`);
    if (snapshotEvery > 0 && count % snapshotEvery === 0) {
      await engine.saveSnapshot(tail, state(tail.index));
      say(`saved ${tail.index}`);
      await engine.trim(tail.index);
      say(`trimmed ${tail.index}`);
    }
  }
  if (!stay) await engine.close();
}

const report = (error) => say(`failed ${error.code} ${error.message}`);

const keepAlive = setInterval(() => {}, 1000);
let engine;
try {
  engine = await openFileEngine({ folder, ...limits });
  await write(engine);
  say('done');
} catch (error) {
  report(error);
  if (engine !== undefined) {
    const start = { index: 0, hash: '0'.repeat(32) };
    await engine.append([entry(1)], start).then(() => say('acked after a failure'), report);
    await engine.tail().then(() => say('tail after a failure'), report);
    await engine.saveSnapshot(start, state(0)).then(() => say('saved after a failure'), report);
    await engine.close().catch(report);
  }
}
if (!stay) clearInterval(keepAlive);
