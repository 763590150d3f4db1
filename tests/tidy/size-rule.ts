import type { ParsedSource } from './parsed-source.ts';
import type { TextFile, Violation } from './repository.ts';

const lineColumnsMax = 120;
const functionLinesMax = 70;
/** Past this a file says in a comment why it is one thing: `// Reason for length: ...`. */
const fileLinesUnexplainedMax = 400;
const fileLinesMax = 500;
const explanation = /(\/\/|\*)\s*reason for (the |this )?length:\s*\S+/i;

/** Files, functions and lines stay short enough to be read in one go. Generated files are exempt. */
export function checkSizes(source: ParsedSource): Violation[] {
  if (source.path.endsWith('.gen.ts')) return [];
  return [...checkFileLength(source), ...checkFunctions(source), ...checkLines(source)];
}

function checkFileLength({ path, text }: TextFile): Violation[] {
  const lines = text.split('\n').length - 1;
  const found = (message: string): Violation[] => [{ path, line: 1, rule: 'file length', message }];
  if (lines > fileLinesMax) return found(`${lines} lines, ${fileLinesMax} at most: split it by noun`);
  if (lines > fileLinesUnexplainedMax && !explanation.test(text)) {
    return found(`${lines} lines: over ${fileLinesUnexplainedMax} needs a comment "Reason for length: ..."`);
  }
  return [];
}

function checkFunctions({ path, functions }: ParsedSource): Violation[] {
  return functions
    .filter((span) => span.lines > functionLinesMax && !span.isTestGroup)
    .map(({ name, line, lines }) => {
      return {
        path,
        line,
        rule: 'function length',
        message: `${name} has ${lines} lines, ${functionLinesMax} at most`,
      };
    });
}

function checkLines({ path, text }: TextFile): Violation[] {
  return text.split('\n').flatMap((line, at) => {
    // An address cannot be broken.
    if (line.length <= lineColumnsMax || /https?:\/\/\S{60,}/.test(line)) return [];
    return [{ path, line: at + 1, rule: 'line length', message: `${line.length} columns, ${lineColumnsMax} at most` }];
  });
}
