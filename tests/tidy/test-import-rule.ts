import { posix } from 'node:path';
import type { ParsedSource } from './parsed-source.ts';
import type { Violation } from './repository.ts';

/** The conformance suite that the library ships: it runs under any test runner, so it throws AssertionErrors. */
const runsUnderAnyRunner = /^packages\/client\/src\/testing\/(?!.*\.test\.ts$)/;

/** Tests that reach past the exports of a package, each for what it could not see otherwise. */
const insides: readonly RegExp[] = [
  // The simulation runs parts of the server by themselves, and plants defects in them and in the core.
  /^simulation\//,
  // The log is opened, read or written past the servers. An engine is no part of what the server exports.
  /^tests\/cluster\/(log-check|lagging-server\.e2e\.test|newer-entries\.e2e\.test)\.ts$/,
  /^tests\/file-engine\/(log-writer\.mjs|writer-process\.ts|folder-lock\.e2e\.test\.ts)$/,
  /^tests\/disk-errors\.e2e\.test\.ts$/,
  // A fault is planted at the files of a snapshot, under the names that the engine gives them.
  /^tests\/robustness\/faulty-disk\.ts$/,
  // The SQL that the library runs is compared with the SQL that it prints.
  /^tests\/library\/(mysql|postgres)-backend\.e2e\.test\.ts$/,
  // A server is compared with the naive model of permissions, and by requests that the core's own property draws.
  /^tests\/auth\/drawn-requests\.e2e\.test\.ts$/,
  // The guide is compared with the commands and flags as they are declared.
  /^tests\/guide\.test\.ts$/,
];

/**
 * Tests assert with one library, so that each failure reads alike and shows what differs. They import a package by its
 * name: what several tests need and no package exports belongs in `@tenure/test-support`.
 */
export function checkTestImports({ path, imports }: ParsedSource): Violation[] {
  return imports.flatMap(({ from, line }) => {
    const message = assertsOtherwise(path, from) ?? intoPackage(path, from);
    return message === undefined ? [] : [{ path, line, rule: 'test imports', message }];
  });
}

function assertsOtherwise(path: string, from: string): string | undefined {
  if (!/^(node:)?assert(\/strict)?$/.test(from)) return undefined;
  if (runsUnderAnyRunner.test(path)) return undefined;
  return "assert with vitest's expect";
}

function intoPackage(path: string, from: string): string | undefined {
  if (!from.startsWith('.') || insides.some((exception) => exception.test(path))) return undefined;
  const target = /^packages\/([^/]+)\//.exec(posix.join(posix.dirname(path), from))?.[1];
  if (target === undefined || path.startsWith(`packages/${target}/`)) return undefined;
  return `import ${target} by its name, not ${from}`;
}
