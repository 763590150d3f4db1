import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const repositoryRoot = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** A file as passed to every rule: its path from the root of the repository, with forward slashes, and its text. */
export interface TextFile {
  readonly path: string;
  readonly text: string;
}

export interface Violation {
  readonly path: string;
  readonly line: number;
  readonly rule: string;
  readonly message: string;
}

/** Output of a build, an install or a run, which is not part of the repository. */
const ignoredFolders = new Set(['node_modules', 'dist', 'coverage', 'tenure-data', 'soak-report']);
const textExtension = /\.(ts|mts|mjs|js|json|md|sh|proto|yaml|yml)$/;

/** Every text file of the repository, in a stable order. Hidden folders are left out, except for the CI script. */
export function repositoryFiles(root: string = repositoryRoot): TextFile[] {
  const paths: string[] = [];
  collect(root, paths);
  return paths
    .map((path) => ({ path: relative(root, path).replaceAll('\\', '/'), text: readFileSync(path, 'utf8') }))
    .toSorted((one, other) => (one.path < other.path ? -1 : 1));
}

function collect(folder: string, paths: string[]): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      const hidden = entry.name.startsWith('.') && entry.name !== '.ci';
      if (!hidden && !ignoredFolders.has(entry.name)) collect(path, paths);
    } else if (isText(entry.name, folder) && entry.name !== 'package-lock.json') {
      paths.push(path);
    }
  }
}

function isText(name: string, folder: string): boolean {
  return textExtension.test(name) || folder.endsWith('.ci') || name === 'LICENSE';
}

/** The number, from 1, of the line that holds the character at `offset`. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line += 1;
  return line;
}

/** Tests, and their helpers in `testing` folders: not part of the shipped code. */
export function isTestCode(path: string): boolean {
  return /\.(test|bench)\.ts$|\/testing\//.test(path);
}
