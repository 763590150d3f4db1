import { existsSync } from 'node:fs';

/**
 * Whether tests with a program can run on this machine: prints the reason if not, and fails instead where all tests
 * must run. `debianPackage` contains the program.
 */
export function isInstalled(isThere: boolean, debianPackage: string): boolean {
  if (isThere) return true;
  const message = `not installed: apt-get install ${debianPackage}`;
  if (process.env['CI'] === 'true') throw new Error(message);
  console.log(`skipped: ${message}`);
  return false;
}

export const mariadbPath = '/usr/sbin/mariadbd';
export const pgbouncerPath = '/usr/sbin/pgbouncer';

export function hasMariadb(): boolean {
  return isInstalled(existsSync(mariadbPath), 'mariadb-server');
}

export function hasPgbouncer(): boolean {
  return isInstalled(existsSync(pgbouncerPath), 'pgbouncer');
}
