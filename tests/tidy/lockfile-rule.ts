import type { Violation } from './repository.ts';

interface LockedPackage {
  readonly version?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/**
 * A lockfile that was written where a registry lacks the binaries of other systems leaves them out, and `npm ci` then
 * refuses it everywhere. So each optional dependency has its entry, whatever system the file was written on.
 */
export function checkLockfile(path: string, text: string): Violation[] {
  const { packages } = JSON.parse(text) as { packages: Record<string, LockedPackage> };
  return Object.entries(packages).flatMap(([owner, entry]) =>
    Object.entries(entry.optionalDependencies ?? {})
      .filter(([name]) => packages[`node_modules/${name}`] === undefined)
      .filter(([name]) => packages[`${owner}/node_modules/${name}`] === undefined)
      .map(([name, version]) => ({ path, line: 1, rule: 'lockfile', message: `${name}@${version} has no entry` })),
  );
}
