import { StateMachine, type Command } from '@tenure/core';
import { afterEach, expect, test } from 'vitest';
import { logStart } from '../engines/chain-hash.ts';
import { EngineError, type EngineErrorCode } from '../engines/engine-error.ts';
import type { LogEngine } from '../engines/log-engine.ts';
import { memoryEngine } from '../engines/memory/memory-engine.ts';
import { decodeCommand, encodeCommand } from './command-codec.ts';
import { encodeEntry } from './entry-codec.ts';
import { recover } from './recovery.ts';
import { systemClock } from '../time/system-clock.ts';

const engines: LogEngine[] = [];
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close();
});

/** A log of `count` puts that is read one entry at a time, with a snapshot behind the first few entries. */
async function logOf(entries: number, snapshotAt: number): Promise<{ engine: LogEngine; state: StateMachine }> {
  const engine = memoryEngine({ maxFollowBytes: 1 });
  engines.push(engine);
  const state = new StateMachine();
  let position = logStart;
  for (let index = 1; index <= entries; index += 1) {
    const put = { key: 'k', value: `${index}`, lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
    const command: Command = { kind: 'put', put };
    position = await engine.append([encodeEntry({ epoch: 0, timeMs: 0 }, [encodeCommand(command)])], position);
    state.apply({ index, epoch: 0, timeMs: 0, commands: [command] });
    if (index !== snapshotAt) continue;
    const steps = state.snapshotForEngine();
    await engine.saveSnapshot(
      position,
      (async function* chunks() {
        for (let step = steps.next(); step.done !== true; step = steps.next()) yield step.value;
      })(),
    );
    await engine.trim(index);
  }
  return { engine, state };
}

test('the entries after the snapshot are applied up to the end of the log, in chunks of any size', async () => {
  const { engine, state } = await logOf(7, 3);
  const recovered = await recover(engine, decodeCommand, systemClock);
  expect(recovered.replayed).toBe(4);
  expect(recovered.position).toEqual(await engine.tail());
  expect(recovered.state.stateHash()).toBe(state.stateHash());
});

test.for<EngineErrorCode>(['trimmed', 'unavailable'])(
  'a log that is %s during the read is read again',
  async (code) => {
    const { engine, state } = await logOf(5, 2);
    const follow = engine.follow.bind(engine);
    let reads = 0;
    engine.follow = async function* once(from, signal) {
      reads += 1;
      for await (const entries of follow(from, signal)) {
        yield entries;
        if (reads === 1) throw new EngineError(code, 'it was there a moment ago');
      }
    };
    const recovered = await recover(engine, decodeCommand, systemClock);
    expect(reads).toBe(2);
    expect(recovered.state.stateHash()).toBe(state.stateHash());
  },
);

test('a damaged log is not read again', async () => {
  const { engine } = await logOf(5, 2);
  let reads = 0;
  engine.loadSnapshot = () => {
    reads += 1;
    return Promise.reject(new EngineError('damaged', 'a chunk is not what was saved'));
  };
  await expect(recover(engine, decodeCommand, systemClock)).rejects.toThrow('a chunk is not what was saved');
  expect(reads).toBe(1);
});
