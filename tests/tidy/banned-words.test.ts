import { describe, expect, test } from 'vitest';
import { checkBannedWords } from './banned-words-rule.ts';

describe('the banned words', () => {
  const check = (text: string, path = 'packages/core/src/a.test.ts') => checkBannedWords({ path, text });

  test.each([
    '// TODO: later',
    '// FIXME',
    '// @ts-ignore',
    '// @ts-expect-error because',
    `it.only('x', f);`,
    `describe.only('x', f);`,
    `it.skip('x', f);`,
    `it.todo('x');`,
    '// oxlint-disable-next-line no-var',
    '// see /work/main/x',
    '// see .library/x',
    '// see shared/design.md',
    '// see reference/etcd.md, section 1',
  ])('refuse %j', (text) => {
    expect(check(`\n${text}\n`)).toMatchObject([{ line: 2 }]);
  });

  test.each([
    '// as many as there are',
    `it.skipIf(!etcd)('x', f);`,
    '// oxlint-disable-next-line no-var -- this file is parsed by old Nodes too',
    '// a network of libraries, a shared lock, ./work/mainly',
  ])('allow %j', (text) => {
    expect(check(text)).toEqual([]);
  });

  test("refuse etcd's texts where the server would write them a second time", () => {
    const text = 'throw new GrpcStatus(14, `etcdserver: request timed out: ${why}`);';
    expect(check(text, 'packages/server/src/api/a.ts')).toHaveLength(1);
    for (const path of ['packages/server/src/engines/etcd/a.ts', 'packages/server/src/api/a.test.ts', 'tests/a.ts'])
      expect(check(text, path)).toEqual([]);
  });

  test('refuse the code words only in code', () => {
    expect(check('TODO is banned', 'STYLE.md')).toEqual([]);
    expect(check('see /work/main', 'STYLE.md')).toHaveLength(1);
  });
});
