import { posix } from 'node:path';
import type { ParsedSource } from './parsed-source.ts';
import { isTestCode } from './repository.ts';
import type { Violation } from './repository.ts';

/** Which of our packages each package may import. What is not listed here may not be imported at all. */
const packagesAllowed: Readonly<Record<string, readonly string[]>> = {
  protocol: [],
  core: [],
  codec: ['core', 'protocol'],
  'grpc-client': [],
  server: ['protocol', 'core', 'codec', 'grpc-client'],
  client: ['protocol', 'grpc-client'],
  cli: ['protocol', 'client'],
  'test-support': [],
};

/** What every package's tests may import, and nothing that is shipped. */
const packagesForTests: readonly string[] = ['test-support'];

/** What users test their own code with: part of the library, though only tests load it. */
const shippedForTests = /^packages\/client\/src\/testing\/(?!.*\.test\.ts$)/;

/** The one part of the server that is a user of the library: its client of etcd. */
const usersOfTheLibrary = /^packages\/server\/src\/engines\/etcd\//;

/** What a package may load only when it is needed, with `import()`. */
const packagesOnDemand: Readonly<Record<string, readonly string[]>> = { cli: ['server'] };

/**
 * Inside the server: what each part may not import. Calls go down (services, then replica, then engines and
 * leadership); what lies below never knows what lies above, and the transport knows nothing of what it carries.
 */
const serverForbidden: Readonly<Record<string, readonly string[]>> = {
  'grpc/transport': ['grpc', 'grpc/watch', 'replica', 'leadership', 'engines', 'http', 'config'],
  'grpc/watch': ['grpc', 'engines', 'http', 'config'],
  grpc: ['http', 'engines'],
  http: ['grpc', 'grpc/watch', 'engines', 'leadership'],
  replica: ['grpc', 'grpc/transport', 'grpc/watch', 'http'],
  leadership: ['grpc', 'grpc/transport', 'grpc/watch', 'http', 'replica', 'engines'],
  engines: ['grpc', 'grpc/transport', 'grpc/watch', 'http', 'replica', 'leadership', 'config'],
  logging: ['grpc', 'grpc/transport', 'grpc/watch', 'http', 'replica', 'leadership', 'engines'],
  config: ['grpc', 'grpc/transport', 'grpc/watch', 'http', 'replica', 'leadership', 'engines'],
  time: [],
  random: [],
};

/** Parts that every other may import, and that import none. */
const foundations: ReadonlySet<string> = new Set(['time', 'random']);

/** The parts that have folders of their own inside a part, longest first. */
const serverParts = Object.keys(serverForbidden).toSorted((one, other) => other.length - one.length);

const coreLibraries = new Set(['sorted-btree']);

export function checkDependencies(source: ParsedSource): Violation[] {
  const owner = /^packages\/([^/]+)\/src\//.exec(source.path)?.[1];
  if (owner === undefined) return [];
  const isTest = isTestCode(source.path);
  return source.imports.flatMap((imported) => {
    const message =
      betweenPackages(owner, source.path, imported, isTest) ??
      insideServer(source.path, imported.from) ??
      (isTest ? undefined : intoCore(owner, imported.from));
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

function insideServer(path: string, from: string): string | undefined {
  const root = 'packages/server/src/';
  if (!path.startsWith(root) || !from.startsWith('.')) return undefined;
  const owner = serverPart(path.slice(root.length));
  const target = posix.join(posix.dirname(path), from);
  if (!target.startsWith(root)) return `${from} leaves the package`;
  const part = serverPart(target.slice(root.length));
  if (owner === undefined) return undefined;
  if (foundations.has(owner) && part !== owner) return `server/${owner} may not import other parts of the server`;
  // A file at the top (server.ts, serve.ts, index.ts) puts the parts together, so no part may import it.
  if (part === undefined) return topLevelRefusal(owner, target.slice(root.length));
  return serverForbidden[owner]?.includes(part) ? `server/${owner} may not import server/${part}` : undefined;
}

function topLevelRefusal(owner: string, file: string): string | undefined {
  return /^(server|serve|index)\.ts$/.test(file)
    ? `server/${owner} may not import ${file}, which puts the parts together`
    : undefined;
}

function serverPart(pathInServer: string): string | undefined {
  return serverParts.find((part) => pathInServer.startsWith(`${part}/`));
}
