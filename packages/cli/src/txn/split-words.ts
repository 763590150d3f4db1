import { CliError } from '../cli-error.ts';

const wordPattern = /"(?:[^"\\]|\\.)*"|'[^']*'|`[^`]*`|[^\s"'`]\S*/g;
const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', 0: '\0', a: '\x07', b: '\b', v: '\v' };

/** Splits a line into words, which may be quoted, as etcdctl does. Throws a CliError `usage`. */
export function splitWords(line: string): string[] {
  if (/\S/.test(line.replace(wordPattern, ''))) throw new CliError('usage', `a quote does not end: ${line}`);
  return [...line.matchAll(wordPattern)].map(([word]) => unquoted(word));
}

/** The text of a word: double quotes have escapes, other quotes and bare words are literal. */
export function unquoted(word: string): string {
  if (word.length >= 2 && /^(['`]).*\1$/s.test(word)) return word.slice(1, -1);
  if (word.length < 2 || !/^".*"$/s.test(word)) return word;
  return word.slice(1, -1).replace(/\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))/g, (_all, byte, point, other) => {
    const code = (byte ?? point) as string | undefined;
    if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
    return escapes[other as string] ?? (other as string);
  });
}
