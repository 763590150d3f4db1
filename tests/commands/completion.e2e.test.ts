import { spawnSync } from 'node:child_process';
import { beforeAll, describe, expect, test } from 'vitest';
import { runCommand } from '../running-command.ts';

describe('tenure completion', () => {
  let script: string;
  beforeAll(async () => {
    script = (await runCommand(['completion', 'bash'])).out;
  });

  /** The completions of bash for the last word of a command line, requested as Readline does. */
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
    expect([status, stderr]).toEqual([0, '']);
    return stdout.split('\n').filter((word) => word !== '');
  }

  test('bash completes commands, their flags and the values of flags', () => {
    expect(complete('l')).toEqual(['lease', 'lock', 'log']);
    expect(complete('lease', 'ke')).toEqual(['keep-alive']);
    expect(complete('lease', 'grant', '--l')).toEqual(['--label']);
    expect(complete('get', '--pre')).toEqual(['--prefix']);
    expect(complete('get', '--sort-by', 'V')).toEqual(['VERSION', 'VALUE']);
    expect(complete('-w', 'j')).toEqual(['json']);
    expect(complete('completion', '')).toEqual(['bash', 'zsh', ...complete('completion', '-')]);
  });

  test('a value is not taken for a command, nor is a flag of another command offered', () => {
    expect(complete('--endpoints', 'lease', 'sta')).toEqual(['status']);
    expect(complete('--endpoints', 'host', ':', '2379', 'lease', 'rev')).toEqual(['revoke']);
    expect(complete('put', '--sort')).toEqual([]);
    expect(complete('put', '--lease', '')).toEqual([]);
  });

  test('after -- of tenure lock bash completes a command', () => {
    expect(complete('lock', 'name', '--', 'bas')).toContain('bash');
    expect(complete('lock', 'name', '--', 'bash', '-')).toEqual([]);
  });

  test('zsh loads its script', async ({ skip }) => {
    const { out, code } = await runCommand(['completion', 'zsh']);
    expect(code).toBe(0);
    expect(out).toMatch(/^#compdef tenure\n/);
    if (spawnSync('zsh', ['--version']).status !== 0) skip('zsh is not installed');
    const program = 'autoload -Uz compinit; compinit -u -D; eval "$1"; print -r -- $_comps[tenure]';
    const zsh = spawnSync('zsh', ['-f', '-c', program, 'zsh', out], { encoding: 'utf8' });
    expect([zsh.status, zsh.stderr]).toEqual([0, '']);
    expect(zsh.stdout).toMatch(/_tenure/);
  });

  test('another shell is refused', async () => {
    expect((await runCommand(['completion', 'fish'])).code).toBe(2);
  });
});
