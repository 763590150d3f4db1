import { describe, expect, test } from 'vitest';
import { etcdVersion, startEtcd } from '../../conformance/servers/etcd-server.ts';
import type { RunningServer } from '../../conformance/servers/server-options.ts';
import { startTenure } from '../../conformance/servers/tenure-server.ts';
import { commandsInHelp, readCommandTable } from './command-table.ts';
import { etcdctlVersion, helpText } from './etcdctl.ts';
import { type Recorded, Recorder } from './recorder.ts';
import { newerSessions, sessions } from './sessions.ts';

const version = etcdctlVersion();
const isNewer = version !== undefined && Number(version.split('.')[1]) >= 5;
const all = { ...sessions, ...(isNewer ? newerSessions : {}) };
const options = { bcryptCost: 4 };

async function recorded(session: string, start: () => Promise<RunningServer>): Promise<readonly Recorded[]> {
  const server = await start();
  try {
    const recorder = new Recorder(server);
    await all[session]!(recorder);
    return recorder.recorded;
  } finally {
    await server.stop();
  }
}

describe.skipIf(version === undefined || etcdVersion() === undefined)(`the commands of etcdctl ${version}`, () => {
  const table = readCommandTable();
  const commands = commandsInHelp(helpText());
  const ran = new Set<string>();

  test('each has a row in docs/etcdctl.md, and each row is of a command', () => {
    expect(commands.length).toBeGreaterThan(40);
    expect(table.map(({ command }) => command)).toEqual([...new Set(table.map(({ command }) => command))]);
    const rows = table.filter(({ versions }) => versions.includes(version!)).map(({ command }) => command);
    expect(rows.toSorted()).toEqual(commands.toSorted());
  });

  test.concurrent.each(Object.keys(all))('%s: Tenure answers as etcd does', { timeout: 180_000 }, async (session) => {
    const [onEtcd, onTenure] = await Promise.all([
      recorded(session, () => startEtcd(options)),
      recorded(session, () => startTenure(options)),
    ]);
    for (const { command } of onEtcd) ran.add(command);
    expect(onTenure).toEqual(onEtcd);
  });

  test('each of which the table says "same" has been compared', () => {
    const isCompared = (name: string): boolean => {
      return [...ran].some((args) => `${args.replace(/^(?:--?\S+ )+/, '')} `.startsWith(`${name} `));
    };
    const same = table.filter(({ onTenure }) => onTenure === 'same').map(({ command }) => command);
    const claimed = commands.filter((command) => same.includes(command));
    expect(claimed.filter((command) => !isCompared(command))).toEqual([]);
    expect(claimed.length).toBeGreaterThan(30);
  });
});
