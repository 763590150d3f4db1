import { expect, test } from 'vitest';
import { parseServerConfig } from './config/parse-server-config.ts';
import { logStart } from './engines/chain-hash.ts';
import { EngineHealth } from './engines/engine-health.ts';
import { memoryEngine } from './engines/memory/memory-engine.ts';
import { createLogger } from './logging/logger.ts';
import { encodeCommand } from './replica/command-codec.ts';
import { encodeEntry } from './replica/entry-codec.ts';
import { systemRandom } from './random/system-random.ts';
import { systemClock } from './time/system-clock.ts';
import { Server } from './server.ts';

/** A log that a server of an earlier version allowed: a member with an invalid address, which led. */
const badMember = { kind: 'registerMember', id: 7n, name: 'bad', clientUrls: ['not a url'] } as const;
const heldLog = [
  [0, { kind: 'createCluster', clusterId: 1n, secret: 'known to the servers' }],
  [1, { kind: 'claim', epoch: 1, leader: '7/1', leaderLeaseMs: 800 }],
  [1, badMember],
  [1, { kind: 'registerMember', id: 8n, name: '', clientUrls: Array<string>(1_000).fill('http://[') }],
  [1, { kind: 'leaseGrant', id: 0n, ttlMs: -5, label: '' }],
  [1, { kind: 'leaseGrant', id: 9n, ttlMs: 0, label: 'x'.repeat(100_000) }],
  [1, { kind: 'compact', revision: -7 }],
  [1, { kind: 'alarm', action: 'deactivate', memberId: 99n, alarm: 'nospace' }],
] as const;

test('a server starts on a log with an entry that is refused today, and warns about it', async () => {
  const engine = memoryEngine({ isShared: true });
  let position = logStart;
  for (const [epoch, command] of heldLog) {
    position = await engine.append([encodeEntry({ epoch, timeMs: 0 }, [encodeCommand(command)])], position);
  }
  const argv = ['--engine', 'memory', '--name', 'good', '--listen-client-urls', 'http://127.0.0.1:0'];
  const outcome = parseServerConfig({ argv, env: {} });
  if (outcome.kind !== 'config') throw new Error(JSON.stringify(outcome));
  const lines: string[] = [];
  const log = createLogger(outcome.config, { write: (line) => lines.push(line) });
  const engineHealth = new EngineHealth({ onChange: () => undefined, onAppendTrouble: () => undefined });
  const server = await Server.open({
    config: outcome.config,
    engine,
    engineHealth,
    log,
    clock: systemClock,
    random: systemRandom,
  });
  try {
    await server.start();
    expect(server.leads).toBe(true);
    const { members } = server.state;
    expect(members.map(({ name }) => name)).toContain('good');
    expect(members).toContainEqual({ id: 7n, name: 'bad', clientUrls: ['not a url'] });
    expect(lines.join('')).toContain('the member bad has registered an invalid address: \\"not a url\\"');
  } finally {
    await server.close();
  }
});
