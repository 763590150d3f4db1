import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ChildProgram } from '@tenure/test-support';
import { expect, test } from 'vitest';

const timeoutMs = 20_000;

test('a child ends with the process that started it, also when that process crashes', async () => {
  const built = fileURLToPath(new URL('../../packages/test-support/dist/index.js', import.meta.url));
  const source = `
    import { ChildProgram } from ${JSON.stringify(built)};
    const child = new ChildProgram({ program: process.execPath, args: ['-e', 'setInterval(() => {}, 1_000)'] });
    console.log('child', child.pid);
    setTimeout(() => { throw new Error('an uncaught error'); }, 10);`;
  const parent = new ChildProgram({ program: process.execPath, args: ['--input-type=module', '-e', source] });
  const [, pid = ''] = await parent.match(/child (\d+)/, timeoutMs);
  expect(await parent.ended).toMatchObject({ code: 1 });
  await expect.poll(() => isRunning(pid)).toBe(false);
});

/** An ended process may stay in the list until its parent has collected its exit code. */
function isRunning(pid: string): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'Z';
  } catch {
    return false;
  }
}
