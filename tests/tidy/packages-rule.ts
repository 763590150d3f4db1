import type { ParsedSource } from './parsed-source.ts';
import { isTestCode, lineAt } from './repository.ts';
import type { TextFile, Violation } from './repository.ts';

interface Manifest {
  readonly name: string;
  readonly dependencies: readonly string[];
  /** Packages that the user provides. */
  readonly peerDependencies: readonly string[];
  readonly devDependencies: readonly string[];
}

/** Programs and type packages without imports: they are started by scripts or read by the compiler. */
const toolsNeverImported = new Set([
  '@bufbuild/buf',
  '@bufbuild/protoc-gen-es',
  'knip',
  'oxfmt',
  'oxlint',
  'oxlint-tsgolint',
  'typescript',
]);

/** Every dependency is used by its package, declared where it is used, and listed in docs/dependencies.md. */
export function checkPackages(
  manifests: readonly TextFile[],
  sources: readonly ParsedSource[],
  documentation: string,
): Violation[] {
  const read = new Map(manifests.map((file) => [file, readManifest(file.text)]));
  return [...read].flatMap(([file, manifest]) => {
    const peers = new Set(
      [...read.values()]
        .filter(({ name }) => manifest.dependencies.includes(name))
        .flatMap(({ peerDependencies }) => peerDependencies),
    );
    const folder = file.path.replace(/package\.json$/, '');
    const own = sources.filter((source) => isOwn(source.path, folder));
    return [
      ...undocumented(file, manifest, documentation),
      ...unused(file, manifest, own, peers),
      ...(folder === '' ? [] : undeclared(manifest, own)),
    ];
  });
}

function readManifest(text: string): Manifest {
  const parsed = JSON.parse(text) as {
    name?: string;
    dependencies?: object;
    devDependencies?: object;
    peerDependencies?: object;
  };
  return {
    name: parsed.name ?? '',
    dependencies: Object.keys(parsed.dependencies ?? {}),
    devDependencies: Object.keys(parsed.devDependencies ?? {}),
    peerDependencies: Object.keys(parsed.peerDependencies ?? {}),
  };
}

function isOwn(path: string, folder: string): boolean {
  return folder === '' || path.startsWith(folder);
}

function undocumented(file: TextFile, manifest: Manifest, documentation: string): Violation[] {
  return [...manifest.dependencies, ...manifest.devDependencies, ...manifest.peerDependencies]
    .filter((name) => !isOurs(name) && !documentation.includes(`\`${name}\``))
    .map((name) => violation(file, name, `${name} has no line in docs/dependencies.md`));
}

/** A package may provide a peer dependency of its own dependency. */
function unused(
  file: TextFile,
  manifest: Manifest,
  own: readonly ParsedSource[],
  peers: ReadonlySet<string>,
): Violation[] {
  const imported = new Set(own.flatMap((source) => source.imports.map((entry) => packageOf(entry.from))));
  return [...manifest.dependencies, ...manifest.devDependencies]
    .filter((name) => !imported.has(name) && !toolsNeverImported.has(name) && !name.startsWith('@types/'))
    .filter((name) => !peers.has(name))
    .map((name) => violation(file, name, `${name} is declared and never imported`));
}

/** A test may use the workspace's development dependencies; shipped code only those that its package declares. */
function undeclared(manifest: Manifest, own: readonly ParsedSource[]): Violation[] {
  const declared = new Set([manifest.name, ...manifest.dependencies, ...manifest.peerDependencies]);
  return own.flatMap((source) => {
    if (isTestCode(source.path) || !source.path.includes('/src/')) return [];
    return source.imports
      .filter(({ from }) => !from.startsWith('.') && !from.startsWith('node:') && !declared.has(packageOf(from)))
      .filter((entry) => !(entry.isDynamic && packageOf(entry.from) === '@tenure/server'))
      .map(({ from, line }) => {
        return {
          path: source.path,
          line,
          rule: 'packages',
          message: `${from} is not among the package's dependencies`,
        };
      });
  });
}

function violation(file: TextFile, name: string, message: string): Violation {
  return { path: file.path, line: lineAt(file.text, file.text.indexOf(`"${name}"`) + 1), rule: 'packages', message };
}

function isOurs(name: string): boolean {
  return name === 'tenure' || name.startsWith('@tenure/');
}

function packageOf(specifier: string): string {
  const parts = specifier.split('/');
  return specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? '');
}
