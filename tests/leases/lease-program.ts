import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { endWithUs } from '@tenure/test-support';

export interface ProgramEnd {
  readonly lines: readonly string[];
  readonly errors: string;
  readonly code: number | null;
  readonly signal: string | null;
}

/** Runs a program to its end. `onLine` gets each line that it prints. */
export async function runProgram(
  program: URL,
  args: readonly string[],
  onLine: (line: string, child: ChildProcess) => void = () => {},
): Promise<ProgramEnd> {
  const child = endWithUs(
    spawn(process.execPath, [fileURLToPath(program), ...args], { stdio: ['ignore', 'pipe', 'pipe'] }),
  );
  const lines: string[] = [];
  let rest = '';
  let errors = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n');
    rest = parts.pop() ?? '';
    for (const line of parts) {
      lines.push(line);
      onLine(line, child);
    }
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  return { lines, errors, code, signal };
}
