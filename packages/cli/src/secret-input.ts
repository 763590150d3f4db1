import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { CliError } from './cli-error.ts';

interface Terminal extends Readable {
  setRawMode(isRaw: boolean): unknown;
}

/** Longer than any password; a file given by mistake is not read to its end. */
const maxSecretBytes = 4096;
const keys = {
  interrupt: '\u0003',
  endOfInput: '\u0004',
  backspace: '\b',
  killLine: '\u0015',
  delete: '\u007f',
} as const;

export function isTerminal(stdin: Readable): stdin is Terminal {
  return 'setRawMode' in stdin && typeof stdin.setRawMode === 'function';
}

/**
 * Asks on stderr, since stdout has only the results. The answer is typed at the terminal, which does not show it.
 * Throws a CliError if the user gives none.
 */
export async function askSecret(terminal: Terminal, stderr: Writable, question: string): Promise<string> {
  // First, since the terminal shows what is typed before.
  terminal.setRawMode(true);
  try {
    stderr.write(question);
    return await typedLine(terminal);
  } finally {
    terminal.setRawMode(false);
    // What is typed next is for a command under a lease, or for the next prompt. Node stops reading only in the next
    // turn, and would stop that prompt, too.
    terminal.pause();
    await setImmediate();
    stderr.write('\n');
  }
}

/** In raw mode the terminal passes every key on, also those that edit the line or stop the program. */
async function typedLine(terminal: Terminal): Promise<string> {
  let typed: string[] = [];
  for (;;) {
    const chunk = await nextChunk(terminal);
    const letters = Array.from((chunk ?? Buffer.from(keys.endOfInput)).toString('utf8'));
    for (const [at, letter] of letters.entries()) {
      if (letter === '\r' || letter === '\n') {
        const rest = letters.slice(at + 1).join('');
        if (rest !== '') terminal.unshift(Buffer.from(rest));
        return typed.join('');
      }
      if (letter === keys.interrupt || letter === keys.endOfInput)
        throw new CliError('failed', 'no password was given');
      if (letter === keys.backspace || letter === keys.delete) typed = typed.slice(0, -1);
      else if (letter === keys.killLine) typed = [];
      // Other control keys are hidden too, and part of no password.
      else if (letter >= ' ' || letter === '\t') typed.push(letter);
    }
    if (typed.length > maxSecretBytes) throw tooLong();
  }
}

/** The next line of stdin, without its end. What follows it stays there for the command. */
export async function lineOfStdin(stdin: Readable): Promise<string> {
  const parts: Buffer[] = [];
  let sizeBytes = 0;
  for (;;) {
    const chunk = await nextChunk(stdin);
    if (chunk === undefined) break;
    const end = chunk.indexOf('\n');
    const part = end < 0 ? chunk : chunk.subarray(0, end);
    parts.push(part);
    sizeBytes += part.length;
    if (sizeBytes > maxSecretBytes) throw tooLong();
    if (end < 0) continue;
    if (end + 1 < chunk.length) stdin.unshift(chunk.subarray(end + 1));
    break;
  }
  return Buffer.concat(parts).toString('utf8').replace(/\r$/, '');
}

/** Undefined at the end of the input. */
async function nextChunk(stdin: Readable): Promise<Buffer | undefined> {
  for (;;) {
    const chunk: Buffer | null = stdin.read();
    if (chunk !== null) return chunk;
    if (stdin.readableEnded || stdin.destroyed) return undefined;
    const over = new AbortController();
    try {
      await Promise.race(['readable', 'end', 'close'].map((event) => once(stdin, event, { signal: over.signal })));
    } finally {
      over.abort();
    }
  }
}

function tooLong(): CliError {
  return new CliError('usage', `a password has at most ${maxSecretBytes} bytes`);
}
