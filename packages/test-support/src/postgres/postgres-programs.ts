import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isInstalled } from '../installed-programs.ts';
import { SystemUser } from '../system-user.ts';

export const postgresUser = new SystemUser('postgres');

/** The folder of Debian's newest PostgreSQL programs; undefined when PostgreSQL is not installed. */
function programFolder(): string | undefined {
  const versions = '/usr/lib/postgresql';
  if (!existsSync(versions)) return undefined;
  const newest = readdirSync(versions).sort((one, other) => Number(other) - Number(one))[0];
  const folder = join(versions, newest ?? '', 'bin');
  return existsSync(join(folder, 'initdb')) ? folder : undefined;
}

export function hasPostgres(): boolean {
  return isInstalled(programFolder() !== undefined, 'postgresql');
}

export function postgresProgram(name: string): string {
  const folder = programFolder();
  if (folder === undefined) throw new Error('PostgreSQL is not installed');
  return join(folder, name);
}

export function postgresVersion(): string {
  const output = execFileSync(postgresProgram('postgres'), ['--version'], { encoding: 'utf8' });
  return /(\d[\d.]*)/.exec(output)?.[1] ?? 'unknown';
}
