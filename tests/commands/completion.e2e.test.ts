import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { beforeAll, describe, test } from 'vitest';
import { runCommand } from '../running-command.ts';

describe('tenure completion', () => {
  let script: string;
  beforeAll(async () => {
    script = (await runCommand(['completion', 'bash'])).out;
  });

  /** What bash offers for the last word of a command line, asked the way that Readline asks. */
  function complete(...words: string[]): string[] {
    const line = words.map((word) => `'${word}'`).join(' ');
    const asking = `
eval "$1"
read -r _ _ _ _ function _ <<< "$(complete -p tenure)"
COMP_WORDS=(tenure ${line}); COMP_CWORD=${words.length}
"$function" tenure "\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { status, stdout, stderr } = spawnSync('bash', ['--norc', '-c', asking, 'bash', script], {
      encoding: 'utf8',
    });
    assert.deepEqual([status, stderr], [0, '']);
    return stdout.split('\n').filter((word) => word !== '');
  }

  test('bash completes commands, their flags and what flags may be given', () => {
    assert.deepEqual(complete('l'), ['lease', 'lock', 'log']);
    assert.deepEqual(complete('lease', 'ke'), ['keep-alive']);
    assert.deepEqual(complete('lease', 'grant', '--l'), ['--label']);
    assert.deepEqual(complete('get', '--pre'), ['--prefix']);
    assert.deepEqual(complete('get', '--sort-by', 'V'), ['VERSION', 'VALUE']);
    assert.deepEqual(complete('-w', 'j'), ['json']);
    assert.deepEqual(complete('completion', ''), ['bash', 'zsh', ...complete('completion', '-')]);
  });

  test('a value is not taken for a command, nor is a flag of another command offered', () => {
    assert.deepEqual(complete('--endpoints', 'lease', 'sta'), ['status']);
    assert.deepEqual(complete('--endpoints', 'host', ':', '2379', 'lease', 'rev'), ['revoke']);
    assert.deepEqual(complete('put', '--sort'), []);
    assert.deepEqual(complete('put', '--lease', ''), []);
  });

  test('behind -- of tenure lock stands a command', () => {
    assert.ok(complete('lock', 'name', '--', 'bas').includes('bash'));
    assert.deepEqual(complete('lock', 'name', '--', 'bash', '-'), []);
  });

  test('zsh takes its script', async ({ skip }) => {
    const { out, code } = await runCommand(['completion', 'zsh']);
    assert.equal(code, 0);
    assert.match(out, /^#compdef tenure\n/);
    if (spawnSync('zsh', ['--version']).status !== 0) skip('zsh is not installed');
    const program = 'autoload -Uz compinit; compinit -u -D; eval "$1"; print -r -- $_comps[tenure]';
    const zsh = spawnSync('zsh', ['-f', '-c', program, 'zsh', out], { encoding: 'utf8' });
    assert.deepEqual([zsh.status, zsh.stderr], [0, '']);
    assert.match(zsh.stdout, /_tenure/);
  });

  test('another shell is refused', async () => {
    assert.equal((await runCommand(['completion', 'fish'])).code, 2);
  });
});
