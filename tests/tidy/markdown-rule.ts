import { posix } from 'node:path';
import type { ParsedSource } from './parsed-source.ts';
import { lineAt } from './repository.ts';
import type { TextFile, Violation } from './repository.ts';

/** A markdown file has one title, and every file or folder that it links to or names in code marks exists. */
export function checkMarkdown(file: TextFile, allPaths: ReadonlySet<string>): Violation[] {
  if (!file.path.endsWith('.md')) return [];
  const prose = blankCodeBlocks(file.text);
  const titles = prose.match(/^# \S/gm)?.length ?? 0;
  const found: Violation[] = [];
  if (titles !== 1) found.push({ path: file.path, line: 1, rule: 'markdown', message: `${titles} titles, 1 wanted` });
  for (const { target, offset, isLink } of references(prose)) {
    const path = isLink ? posix.join(posix.dirname(file.path), target) : target;
    if (!exists(path, allPaths)) {
      found.push({
        path: file.path,
        line: lineAt(prose, offset),
        rule: 'markdown',
        message: `${target} does not exist`,
      });
    }
  }
  return found;
}

/** A comment that refers to a document names one that is in the repository. */
export function checkDocumentsNamed(source: ParsedSource, allPaths: ReadonlySet<string>): Violation[] {
  const names = new Set([...allPaths].map((path) => posix.basename(path)));
  return source.comments.flatMap(({ text, line }) =>
    [...text.matchAll(/\b[\w/-]+\.md\b/g)]
      .filter(([name]) => !names.has(posix.basename(name)))
      .map(([name]) => ({ path: source.path, line, rule: 'markdown', message: `${name} is not in the repository` })),
  );
}

/** Links to files, and names in code marks that begin with a top folder of ours and name a file of the source tree. */
function* references(prose: string): Generator<{ target: string; offset: number; isLink: boolean }> {
  for (const match of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
    const target = (match[1] ?? '').replace(/#.*$/, '');
    if (target !== '' && !/^[a-z]+:/.test(target)) yield { target, offset: match.index, isLink: true };
  }
  for (const match of prose.matchAll(
    /`((packages|scripts|tests|conformance|simulation|benchmarks|docs|\.ci)\/[\w./-]*)`/g,
  )) {
    const target = match[1] ?? '';
    if (!target.includes('/dist/')) yield { target, offset: match.index, isLink: false };
  }
}

function exists(path: string, allPaths: ReadonlySet<string>): boolean {
  const bare = path.replace(/\/$/, '');
  if (allPaths.has(bare) || bare === '.') return true;
  for (const known of allPaths) if (known.startsWith(`${bare}/`)) return true;
  return false;
}

/** Blanks fenced code, so that a shell comment is not a title, and keeps the offsets. */
function blankCodeBlocks(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```/gm, (block) => block.replaceAll(/[^\n]/g, ' '));
}
