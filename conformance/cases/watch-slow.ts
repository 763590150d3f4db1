import { expect } from 'vitest';
import { bytes } from './bytes.ts';
import type { CaseContext } from './case-context.ts';
import type { CaseGroup } from './case.ts';

const valueBytes = 1024 * 1024;
/** Far more than the windows of HTTP/2 allow a server to send to a paused reader. */
const puts = 16;

async function putMuch(t: CaseContext): Promise<bigint> {
  // Snapshots that other cases take of this server would contain all of it.
  t.cleanUp(() => forget(t));
  const base = await t.revision();
  const value = bytes('v'.repeat(valueBytes));
  for (let index = 0; index < puts; index += 1) await t.kv.put({ key: t.key('a'), value });
  return base;
}

async function forget(t: CaseContext): Promise<void> {
  const { header } = await t.kv.deleteRange(t.all());
  await t.kv.compact({ revision: header?.revision ?? 0n });
}

export const watchSlow: CaseGroup = {
  name: 'Watch, a reader that is slow',
  cases: [
    {
      name: 'loses nothing and reorders nothing while the reader rests',
      run: async (t) => {
        const watch = t.watchStream();
        const { watchId } = await watch.create({ key: t.key('a') });
        watch.pause();
        const base = await putMuch(t);
        watch.resume();
        const events = await watch.events(watchId, puts);
        const revisions = events.map(({ kv }) => Number((kv?.modRevision ?? 0n) - base));
        expect(revisions).toEqual(Array.from({ length: puts }, (_, index) => index + 1));
      },
    },
    {
      name: 'does not hold up other readers',
      run: async (t) => {
        const [slow, fast] = [t.watchStream(), t.watchStream()];
        await slow.create({ key: t.key('a') });
        await fast.create({ key: t.key('a') });
        slow.pause();
        await putMuch(t);
        expect(await fast.events(0n, puts)).toHaveLength(puts);
        slow.resume();
        expect(await slow.events(0n, puts)).toHaveLength(puts);
      },
    },
    {
      name: 'never skips revisions compacted while the reader pauses: they are sent, or the watch ends with a reason',
      run: async (t) => {
        const watch = t.watchStream();
        const { watchId } = await watch.create({ key: t.key('a') });
        watch.pause();
        const base = await putMuch(t);
        const compactRevision = await t.revision();
        await t.kv.compact({ revision: compactRevision });
        watch.resume();
        let next = base + 1n;
        while (next <= compactRevision) {
          const reply = await watch.next(watchId);
          for (const { kv } of reply.events) {
            expect(kv?.modRevision).toBe(next);
            next += 1n;
          }
          if (!reply.canceled) continue;
          expect(reply.compactRevision).toBe(compactRevision);
          return;
        }
      },
    },
  ],
};
