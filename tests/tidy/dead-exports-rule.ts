import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { repositoryRoot } from './repository.ts';
import type { Violation } from './repository.ts';

interface KnipIssue {
  readonly file: string;
  readonly [kind: string]: unknown;
}

/** knip's kinds of findings, with our texts. */
const kinds: Readonly<Record<string, string>> = {
  files: 'nothing imports this file',
  exports: 'is exported and nothing imports it',
  types: 'is an exported type and nothing imports it',
  nsExports: 'is exported and nothing imports it',
  nsTypes: 'is an exported type and nothing imports it',
  duplicates: 'is exported twice',
};

/** Follows the imports from every entry and reports unused exports. Takes a few seconds: it parses everything. */
export async function findDeadExports(folder: string): Promise<Violation[]> {
  const knip = join(repositoryRoot, 'node_modules/knip/bin/knip.js');
  const output = await runNode([knip, '--directory', folder, '--reporter', 'json', '--no-progress', '--no-exit-code']);
  const report = JSON.parse(output) as { issues?: KnipIssue[] };
  return (report.issues ?? []).flatMap((issue) =>
    Object.entries(kinds).flatMap(([kind, meaning]) =>
      entriesOf(issue[kind]).map((entry) => violation(issue, entry, meaning)),
    ),
  );
}

function violation(issue: KnipIssue, entry: { name?: string; line?: number }, meaning: string): Violation {
  const message = entry.name === undefined || entry.name === issue.file ? meaning : `${entry.name} ${meaning}`;
  return { path: issue.file, line: entry.line ?? 1, rule: 'dead exports', message };
}

function entriesOf(value: unknown): { name?: string; line?: number }[] {
  return Array.isArray(value) ? value.flat() : [];
}

function runNode(args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, args, { maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(new Error(`${args[0]} failed: ${stderr}`, { cause: error }));
    });
  });
}
