import type { Violation } from './repository.ts';

interface LockedPackage {
  readonly version?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/**
 * A lockfile written with a registry that lacks the binaries of other systems omits them, and `npm ci` then refuses it
 * everywhere. So each optional dependency must have an entry, regardless of the system that wrote the file.
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
