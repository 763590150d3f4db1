import type { ParsedSource } from './parsed-source.ts';
import { isTestCode } from './repository.ts';
import type { Violation } from './repository.ts';

/** The packages that each package may import. A package that is not listed here may not be imported at all. */
const packagesAllowed: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  core: [],
  codec: ['core', 'protocol'],
  'grpc-client': [],
  'grpc-server': [],
  server: ['protocol', 'core', 'codec', 'grpc-client', 'grpc-server'],
  client: ['protocol', 'grpc-client'],
  cli: ['protocol', 'client'],
  'test-support': ['grpc-server'],
};

/** Packages that every package's tests may import, and no shipped code. */
const packagesForTests: readonly string[] = ['test-support'];

/** Helpers for users' own tests: part of the library, though only tests load them. */
const shippedForTests = /^packages\/client\/src\/testing\/(?!.*\.test\.ts$)/;

/** The only part of the server that uses the library: its client of etcd. */
const usersOfTheLibrary = /^packages\/server\/src\/engines\/etcd\//;

/** Packages that a package may load only on demand, with `import()`. */
const packagesOnDemand: Readonly<Record<string, readonly string[]>> = { cli: ['server'] };

const coreLibraries = new Set(['sorted-btree']);

export function checkDependencies(source: ParsedSource): Violation[] {
  const owner = /^packages\/([^/]+)\/src\//.exec(source.path)?.[1];
  if (owner === undefined) return [];
  const isTest = isTestCode(source.path);
  return source.imports.flatMap((imported) => {
    const message =
      betweenPackages(owner, source.path, imported, isTest) ?? (isTest ? undefined : intoCore(owner, imported.from));
    return message === undefined ? [] : [{ path: source.path, line: imported.line, rule: 'dependencies', message }];
  });
}

function betweenPackages(
  owner: string,
  path: string,
  { from, isDynamic }: { readonly from: string; readonly isDynamic: boolean },
  isTest: boolean,
): string | undefined {
  if (from === 'tenure/etcd' && usersOfTheLibrary.test(path)) return undefined;
  if (/^(\.\.\/)+packages\//.test(from)) return `import a package by its name, not ${from}`;
  const match =
    /^@tenure\/([^/]+)(\/.*)?$/.exec(from) ?? (/^tenure(\/|$)/.test(from) ? ['', 'client', undefined] : null);
  const target = match?.[1];
  if (target === undefined) return undefined;
  if (match?.[2] !== undefined) return `import @tenure/${target} through its index, not ${from}`;
  if (packagesForTests.includes(target) && isTest && !shippedForTests.test(path)) return undefined;
  if (target === owner || packagesAllowed[owner]?.includes(target)) return undefined;
  if (packagesOnDemand[owner]?.includes(target)) {
    return isDynamic || isTest ? undefined : `${owner} may load ${target} only with import()`;
  }
  return `${owner} may not import ${target}`;
}

function intoCore(owner: string, from: string): string | undefined {
  if (owner !== 'core' || from.startsWith('.') || coreLibraries.has(from.split('/')[0]!)) return undefined;
  return `core may import only ${[...coreLibraries].join(', ')}, not ${from}`;
}
