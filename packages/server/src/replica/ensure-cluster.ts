import { defaultTxnLimits } from '@tenure/core';
import { logStart } from '../engines/chain-hash.ts';
import { EngineError } from '../engines/engine-error.ts';
import type { LogEngine } from '../engines/log-engine.ts';
import { randomId } from '../random/random-id.ts';
import type { Random } from '../random/random.ts';
import type { Clock } from '../time/clock.ts';
import { sleep } from '../time/sleep.ts';
import { encodeCommand } from './command-codec.ts';
import { encodeEntry } from './entry-codec.ts';

/** Failed attempts before the start fails. */
const maxTries = 20;
const retryDelayMs = 250;

/** Creates the cluster in an empty log. The first server to append does it; the others find the cluster there. */
export async function ensureCluster(
  engine: LogEngine,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): Promise<void> {
  const clusterId = randomId(random);
  const secret = random.bytes(32).toString('base64url');
  const entry = encodeEntry({ epoch: 0, timeMs: 0 }, [
    encodeCommand({ kind: 'createCluster', clusterId, secret }),
    encodeCommand({ kind: 'setTxnLimits', limits: defaultTxnLimits }),
  ]);
  for (let tries = 1; ; tries += 1) {
    const { index } = await engine.tail();
    if (index > 0) return;
    try {
      await engine.append([entry], logStart);
      return;
    } catch (error) {
      const passing = error instanceof EngineError && error.isPassing;
      if (!passing || tries >= maxTries) throw error;
      await sleep(clock, retryDelayMs);
    }
  }
}
