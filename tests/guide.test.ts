import { parseServerConfig } from '@tenure/server';
import type { Command } from 'commander';
import { readFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { CommandContext } from '../packages/cli/src/command-context.ts';
import { buildProgram } from '../packages/cli/src/program.ts';

const guides = ['docs/operations.md', 'README.md'];

/** The tenure commands in the shell examples of a text, without shell syntax. */
function commandsIn(text: string): string[] {
  const blocks = [...text.matchAll(/^ *```sh\n([\s\S]*?)^ *```/gm)].map(([, block = '']) => block);
  const lines = blocks.flatMap((block) => block.replaceAll(/\\\n\s*/g, ' ').split('\n'));
  return lines
    .map((line) =>
      line
        .replace(/\s+#.*$/, '')
        .replaceAll(/\s+/g, ' ')
        .trim(),
    )
    .filter((line) => /^(npx )?tenure /.test(line));
}

/** The complete command line as commander parses it, with actions that do nothing. */
async function parse(argv: readonly string[]): Promise<void> {
  const io = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough(), env: {} };
  const program = buildProgram(new CommandContext(io));
  const silence = (command: Command): void => {
    command.exitOverride();
    if (command.commands.length === 0) command.action(() => undefined);
    for (const each of command.commands) silence(each);
  };
  silence(program);
  await program.parseAsync([...argv], { from: 'user' });
}

describe.each(guides)('the commands in %s', (path) => {
  const commands = commandsIn(readFileSync(path, 'utf8'));

  test('are there', () => expect(commands.length).toBeGreaterThan(2));

  test.each(commands)('%s', async (command) => {
    const [, first = '', ...rest] = command.replace(/^npx /, '').split(/\s+/);
    if (first !== 'serve') return parse([first, ...rest]);
    const argv = rest.map((word) => word.replace(/^(['"])(.*)\1$/, '$2'));
    expect(parseServerConfig({ argv, env: {} })).toMatchObject({ kind: 'config' });
  });
});

test('a command that does not parse is detected', async () => {
  await expect(parse(['snapshot', 'restore', 'file', '--no-such-option'])).rejects.toThrow('unknown option');
  expect(commandsIn('```sh\ntenure put a \\\n  b  # why\n```\n')).toEqual(['tenure put a b']);
});
