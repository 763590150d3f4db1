import { expect, test } from 'vitest';
import { ChildProgram } from './child-program.ts';

const program = process.execPath;
const timeoutMs = 20_000;
const node = (source: string): ChildProgram => new ChildProgram({ program, args: ['-e', source] });
const stays = 'setInterval(() => {}, 1_000);';

test('waits for output, and reports how the program ended and its last output', async () => {
  const child = node(`console.log('up 42'); console.error('beside'); process.exitCode = 3;`);
  expect(await child.printed(/up \d+/)).toBe('up 42\n');
  expect((await child.match(/b(.*)e\n/, timeoutMs))[1]).toBe('esid');
  expect(await child.ended).toEqual({ code: 3, signal: null, out: 'up 42\n', err: 'beside\n' });
  expect(child.hasEnded).toBe(true);
});

test('lets two wait at once', async () => {
  const child = node(`console.log('one'); setTimeout(() => console.log('two'), 20);`);
  expect(await Promise.all([child.printed('two'), child.printed('one')])).toHaveLength(2);
});

test('rejects with the output when the program ends without it or takes too long', async () => {
  await expect(node(`console.error('no room')`).printed('up')).rejects.toThrow(/ended without up:\nno room/);
  const child = node(stays);
  await expect(child.match(/up/, 1)).rejects.toThrow('in time');
  await expect(child.answers(() => Promise.reject(new Error('closed')), 1)).rejects.toThrow('does not answer');
  expect(await child.end()).toMatchObject({ signal: 'SIGTERM' });
});

test('reports a missing program', async () => {
  const child = new ChildProgram({ program: '/no/such/program', args: [] });
  await expect(child.printed('up')).rejects.toThrow('ENOENT');
  expect(() => child.pid).toThrow('was not started');
});

test('asks until the answer is yes, and takes an error for a no', async () => {
  const child = node(stays);
  const answers = [false, new Error('not yet'), true];
  await child.answers(async () => {
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  }, timeoutMs);
  expect(answers).toEqual([]);
  await child.end('SIGKILL');
});
