import { afterEach, describe, expect, test } from 'vitest';
import type { LogEngine } from '../engines/log-engine.ts';
import { memoryEngine } from '../engines/memory/memory-engine.ts';
import { encodeCommand } from './command-codec.ts';
import { grantingAuthority } from './testing/granting-authority.ts';
import { Sequencer, type SequencerOptions } from './sequencer.ts';
import { systemClock } from '../time/system-clock.ts';

const engines: LogEngine[] = [];
afterEach(async () => {
  for (const engine of engines.splice(0)) await engine.close();
});

/** A sequencer on a log whose appends return when the test lets them. */
async function start(options: Partial<SequencerOptions> = {}) {
  const engine = memoryEngine();
  engines.push(engine);
  const append = engine.append.bind(engine);
  const out: (() => void)[] = [];
  const begun: (() => void)[] = [];
  engine.append = async (batch, after) => {
    const returned = new Promise<void>((resolve) => out.push(resolve));
    begun.splice(0).forEach((tell) => tell());
    await returned;
    return await append(batch, after);
  };
  const sequencer = new Sequencer({
    engine,
    position: await engine.tail(),
    epoch: 1,
    authority: grantingAuthority,
    rowsOf: () => 0,
    apply: (_position, _headers, _encoded, commands) => commands.map(() => ({ kind: 'ok', revision: 1 })),
    appended: () => {},
    failed: (error) => expect.fail(error.message),
    clock: systemClock,
    ...options,
  });
  const appendBegins = async (): Promise<void> => {
    if (out.length === 0) await new Promise<void>((resolve) => begun.push(resolve));
  };
  return { sequencer, appendBegins, letReturn: () => out.shift()?.() };
}

describe('a sequencer that retires while an append is in flight', () => {
  test('rejects the waiters for that append: no other server would ever answer them', async () => {
    const { sequencer, appendBegins, letReturn } = await start();
    const barrier = sequencer.barrier();
    await appendBegins();
    sequencer.retire();
    letReturn();
    await expect(barrier).rejects.toThrow('this server does not lead any more');
  });

  test('answers the waiters whose append has returned, and no later ones', async () => {
    const { sequencer, appendBegins, letReturn } = await start();
    const barrier = sequencer.barrier();
    await appendBegins();
    letReturn();
    await barrier;
    const next = sequencer.barrier();
    await appendBegins();
    sequencer.retire();
    await expect(next).rejects.toThrow('this server does not lead any more');
    await expect(sequencer.barrier()).rejects.toThrow('this server does not lead any more');
    letReturn();
  });
});

describe('a sequencer that cannot apply an appended entry', () => {
  test('does not refuse a forwarded proposal, which would go to the next leader: it is in the log', async () => {
    const failures: Error[] = [];
    const { sequencer, appendBegins, letReturn } = await start({
      apply: () => {
        throw new Error('a broken invariant');
      },
      failed: (error) => failures.push(error),
    });
    const command = { kind: 'leaseRevoke', id: 1n } as const;
    const told: string[] = [];
    const own = sequencer.propose(command).catch(() => told.push('own'));
    const encoded = { ...encodeCommand(command), origin: { run: 1, sequence: 1 } };
    void sequencer.proposeEncoded(command, encoded).catch(() => told.push('of another server'));
    await appendBegins();
    letReturn();
    await own;
    await new Promise((resolve) => setImmediate(resolve));
    expect(told).toEqual(['own']);
    expect(failures.map(({ message }) => message)).toEqual(['a broken invariant']);
  });
});
