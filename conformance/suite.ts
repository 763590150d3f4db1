import { afterAll, beforeAll, describe, test } from 'vitest';
import { enableAuth, rootContext } from './cases/accounts.ts';
import { CaseContext } from './cases/case-context.ts';
import type { Case, CaseGroup } from './cases/case.ts';
import { caseGroups } from './cases/index.ts';
import { removeKeyFiles } from './servers/auth-flags.ts';
import type { RunningServer, ServerKind, ServerOptions } from './servers/server-options.ts';
import { ServerPool } from './servers/server-pool.ts';

/** Including the time that a case waits for a free server. */
const defaultCaseTimeoutMs = 120_000;
/** Most cases wait, for a lease to end or for a disk, so several run at a time, each on its own server. */
const serversAtOnce = 3;

export interface Subject {
  readonly kind: ServerKind;
  /** The version of the implemented etcd API, such as '3.4.23': decides which marked cases run. */
  readonly apiVersion: string;
  /** Names of cases that do not apply to this subject, with the reason. */
  readonly exceptions?: ReadonlyMap<string, string>;
  /** How many cases run at once for the groups without options. */
  readonly servers?: number;
  start(options?: ServerOptions): Promise<RunningServer>;
}

function isOlder(version: string, than: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [thanMajor = 0, thanMinor = 0] = than.split('.').map(Number);
  return major < thanMajor || (major === thanMajor && minor < thanMinor);
}

/** Why the subject does not run a case; undefined when it does. */
function reasonToPass(subject: Subject, { name, since, stricter, tenureOnly }: Case): string | undefined {
  const exception = subject.exceptions?.get(name);
  if (exception !== undefined) return exception;
  if (subject.kind === 'tenure') return stricter === undefined ? undefined : `etcd only: ${stricter}`;
  if (tenureOnly !== undefined) return `Tenure only: ${tenureOnly}`;
  if (since !== undefined && isOlder(subject.apiVersion, since)) return `since etcd ${since}`;
  return undefined;
}

/** Registers all cases for one kind of server. Skipped cases are listed after the others have run. */
export function describeConformance(subject: Subject): void {
  describe.concurrent(`conformance of ${subject.kind}`, () => {
    let shared: ServerPool | undefined;
    const own = new Map<ServerOptions, Promise<ServerPool>>();
    const passedOver: string[] = [];

    beforeAll(async () => {
      shared = await ServerPool.start(subject.servers ?? serversAtOnce, () => subject.start());
    });
    afterAll(async () => {
      await shared?.stop();
      // One that did not start has failed its groups already.
      const pools = await Promise.allSettled(own.values());
      for (const pool of pools) if (pool.status === 'fulfilled') await pool.value.stop();
      removeKeyFiles();
      const list = passedOver.map((line) => `\n  ${line}`).join('');
      process.stdout.write(`\n${passedOver.length} cases are not for ${subject.kind} ${subject.apiVersion}:${list}\n`);
    });

    caseGroups.forEach((group, index) => {
      const cases = group.cases.filter((each) => {
        const reason = reasonToPass(subject, each);
        if (reason !== undefined) passedOver.push(`${group.name}: ${each.name} (${reason})`);
        return reason === undefined;
      });
      if (cases.length === 0) return;
      describe(group.name, () => {
        describeGroup({ ...group, cases }, `g${index}`, async ({ server, asRoot = false }) => {
          if (server === undefined) return shared;
          const pool = own.get(server) ?? startPool(subject, server, asRoot);
          own.set(server, pool);
          return pool;
        });
      });
    });
  });
}

/** One server with these options. */
async function startPool(subject: Subject, options: ServerOptions, asRoot: boolean): Promise<ServerPool> {
  const pool = await ServerPool.start(1, () => subject.start(options));
  if (asRoot) await pool.lend(enableAuth);
  return pool;
}

type ServersOf = (group: CaseGroup) => Promise<ServerPool | undefined>;

function describeGroup(group: CaseGroup, prefix: string, serversOf: ServersOf): void {
  let servers: ServerPool | undefined;
  beforeAll(async () => {
    servers = await serversOf(group);
  });
  group.cases.forEach((each, index) => {
    test(each.name, { timeout: each.timeoutMs ?? defaultCaseTimeoutMs }, async () => {
      if (servers === undefined) throw new Error('the server did not start');
      const keys = `${prefix}.${index}/`;
      await servers.lend(async (server) => {
        await runCase(each, group.asRoot ? await rootContext(server, keys) : new CaseContext(server, keys));
      });
    });
  });
}

async function runCase({ run }: Case, context: CaseContext): Promise<void> {
  try {
    await run(context);
  } catch (error) {
    // The error of the case takes precedence over one of its clean-up.
    await context.close().catch(() => undefined);
    throw error;
  }
  await context.close();
}
