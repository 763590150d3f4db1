import { afterAll, beforeAll, describe, it } from 'vitest';
import { CaseContext } from './cases/case-context.ts';
import type { Case, CaseGroup } from './cases/case.ts';
import { caseGroups } from './cases/index.ts';
import type { RunningServer, ServerKind, ServerOptions } from './servers/server-options.ts';

const defaultCaseTimeoutMs = 20_000;

export interface Subject {
  readonly kind: ServerKind;
  /** The version of the etcd API that it speaks, such as '3.4.23': decides which marked cases run. */
  readonly apiVersion: string;
  /** Names of cases that are not for this subject, with why. */
  readonly exceptions?: ReadonlyMap<string, string>;
  start(options?: ServerOptions): Promise<RunningServer>;
}

function isOlder(version: string, than: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [thanMajor = 0, thanMinor = 0] = than.split('.').map(Number);
  return major < thanMajor || (major === thanMajor && minor < thanMinor);
}

/** Why the subject does not run a case; undefined when it does. */
function reasonToPass(subject: Subject, { name, since, tenureOnly }: Case): string | undefined {
  const exception = subject.exceptions?.get(name);
  if (exception !== undefined) return exception;
  if (subject.kind === 'tenure') return undefined;
  if (tenureOnly !== undefined) return `Tenure only: ${tenureOnly}`;
  if (since !== undefined && isOlder(subject.apiVersion, since)) return `since etcd ${since}`;
  return undefined;
}

/** Registers all cases for one kind of server. What a kind does not run is listed when the others have run. */
export function describeConformance(subject: Subject): void {
  describe(`conformance of ${subject.kind}`, () => {
    let shared: RunningServer | undefined;
    const passedOver: string[] = [];

    beforeAll(async () => {
      shared = await subject.start();
    });
    afterAll(async () => {
      await shared?.stop();
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
        describeGroup(subject, { ...group, cases }, `g${index}`, () => shared);
      });
    });
  });
}

function describeGroup(
  subject: Subject,
  group: CaseGroup,
  prefix: string,
  shared: () => RunningServer | undefined,
): void {
  let own: RunningServer | undefined;
  if (group.server !== undefined) {
    beforeAll(async () => {
      own = await subject.start(group.server);
    });
    afterAll(async () => {
      await own?.stop();
    });
  }
  group.cases.forEach((each, index) => {
    it(each.name, { timeout: each.timeoutMs ?? defaultCaseTimeoutMs }, async () => {
      const server = own ?? shared();
      if (server === undefined) throw new Error('the server did not start');
      const context = new CaseContext(server, `${prefix}.${index}/`);
      try {
        await each.run(context);
      } catch (error) {
        // What the case said counts, not what its cleaning up says after it.
        await context.close().catch(() => undefined);
        throw error;
      }
      await context.close();
    });
  });
}
