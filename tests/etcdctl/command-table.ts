import { readFileSync } from 'node:fs';

export interface CommandRow {
  readonly command: string;
  /** The versions of etcdctl that have it. */
  readonly versions: readonly string[];
  /** `same`, or why its output is not the same. */
  readonly onTenure: string;
}

/** The table in docs/etcdctl.md. */
export function readCommandTable(): readonly CommandRow[] {
  const page = readFileSync(new URL('../../docs/etcdctl.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `([^`]+)` +\| ([^|]+?) +\| (.+?) +\|$/gm)];
  return rows.map(([, command = '', versions = '', onTenure = '']) => {
    return { command, versions: versions.split(', '), onTenure };
  });
}

/** The commands in the help text of etcdctl, such as `lease grant`. */
export function commandsInHelp(help: string): readonly string[] {
  const [, section = ''] = /^COMMANDS:\n([\s\S]*?)^OPTIONS:/m.exec(help) ?? [];
  return [...section.matchAll(/^\s+([a-z][a-z -]*?)\t/gm)].map(([, command = '']) => command);
}
