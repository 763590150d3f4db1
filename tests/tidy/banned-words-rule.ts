import { lineAt } from './repository.ts';
import type { TextFile, Violation } from './repository.ts';

interface BannedWord {
  readonly pattern: RegExp;
  readonly instead: string;
  /** The files in which the word is banned; every file when this is left out. */
  readonly paths?: RegExp;
}

const code = /\.(ts|mjs|js)$/;
const testFile = /\.test\.ts$|^conformance\//;

const bannedWords: readonly BannedWord[] = [
  {
    pattern: /\b(TODO|FIXME|XXX|HACK)\b/,
    instead: 'do it now, or say in a sentence what is left out and why',
    paths: code,
  },
  { pattern: /@ts-(ignore|nocheck|expect-error)\b/, instead: 'repair the type', paths: code },
  { pattern: /\b(describe|it|test|suite)\.only\b/, instead: 'run one test by its name instead', paths: code },
  {
    pattern: /\b(describe|it|test|suite)\.(skip|todo)\(/,
    instead: 'use skipIf with a printed reason',
    paths: testFile,
  },
  { pattern: /\beslint-disable\b/, instead: 'the linter here is oxlint', paths: code },
  {
    pattern: /oxlint-disable(-next-line|-line)?\s*([a-z/-]+)?\s*(\*\/)?$/m,
    instead: 'add -- and the reason',
    paths: code,
  },
  {
    pattern: /['"`]etcdserver: /,
    instead: "take etcd's text from the catalogue of errors, without a suffix",
    paths: /^packages\/(server|core)\/src\/(?!engines\/etcd\/|.*(\.test\.ts$|\/testing\/)).*\.ts$/,
  },
  { pattern: /\/work\/(main|shared)\b|(^|[\s"'`(/])\.library\b/m, instead: 'name no path of one machine' },
  {
    pattern: /\bshared\/(design|reference)\b|\breference\/[a-z-]+\.md\b/,
    instead: 'point to a document of this repository',
  },
];

/** Words that no finished file contains. Only this rule and its tests may spell them. */
export function checkBannedWords(file: TextFile): Violation[] {
  if (file.path.startsWith('tests/tidy/banned-words') || file.path.endsWith('.gen.ts')) return [];
  return bannedWords.flatMap(({ pattern, instead, paths }) => {
    if (paths !== undefined && !paths.test(file.path)) return [];
    return [...file.text.matchAll(new RegExp(pattern, `g${pattern.flags}`))].map((match) => ({
      path: file.path,
      line: lineAt(file.text, match.index + (match[0].length - match[0].trimStart().length) + 1),
      rule: 'banned words',
      message: `"${match[0].trim()}": ${instead}`,
    }));
  });
}
