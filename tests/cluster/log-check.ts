import { logStart } from '../../packages/server/src/engines/chain-hash.ts';
import { openSharedEngine } from '../../packages/server/src/engines/shared-engine.ts';
import { readBehind } from '../../packages/server/src/engines/testing/engine-case.ts';
import { decodeCommand } from '../../packages/server/src/replica/command-codec.ts';
import { decodeEntry } from '../../packages/server/src/replica/entry-codec.ts';
import type { TestedEngine } from './tested-engine.ts';

export interface LogFacts {
  readonly entries: number;
  /** The number of epochs. */
  readonly claims: number;
}

/**
 * Reads the whole log, bypassing all servers. Throws if an entry of an epoch is behind the claim of a later one, if an
 * epoch begins without a claim, or if a command that a server proposed once occurs twice. The log must not have been
 * trimmed.
 */
export async function checkLog(tested: TestedEngine): Promise<LogFacts> {
  const engine = await openSharedEngine({
    url: tested.urlAt(tested.port),
    schema: 'tenure',
    dedicated: false,
    onNotice: () => undefined,
  });
  try {
    const { index } = await engine.tail();
    const entries = await readBehind(engine, logStart, index);
    const origins = new Set<string>();
    let epoch = 0;
    let claims = 0;
    for (const { position, bytes } of entries) {
      const { headers, commands } = decodeEntry(bytes);
      if (headers.epoch < epoch)
        throw new Error(`entry ${position.index} of epoch ${headers.epoch} is behind ${epoch}`);
      if (headers.epoch > epoch) {
        const first = commands[0] === undefined ? undefined : decodeCommand(commands[0]);
        if (first?.kind !== 'claim') throw new Error(`epoch ${headers.epoch} begins without a claim`);
        claims += 1;
      }
      epoch = headers.epoch;
      for (const { origin } of commands) {
        if (origin === undefined) continue;
        const name = `${origin.run} ${origin.sequence}`;
        if (origins.has(name)) throw new Error(`entry ${position.index} holds a command for the second time`);
        origins.add(name);
      }
    }
    return { entries: entries.length, claims };
  } finally {
    await engine.close();
  }
}
