import { describe, expect, test } from 'vitest';
import { checkRetiredWords } from './retired-words-rule.ts';

describe('the retired words', () => {
  const check = (text: string, path = 'packages/core/src/a.ts') => checkRetiredWords({ path, text });

  test.each([
    '// Nobody is told.',
    '// whoever leads',
    '// asked in vain',
    '// Upon a claim',
    'const desk = new ForwardingDesk();',
    "import { LeaseKeeper } from './lease-keeper.ts';",
    'await breathe(clock);',
    'readonly rightMs: number;',
    'state.scrub();',
    '// the right to lead has lapsed',
    '// a dated lease',
  ])('refuse %j', (text) => {
    expect(check(`\n${text}\n`)[0]).toMatchObject({ line: 2, rule: 'retired words' });
    expect(check(text, 'docs/operations.md')).not.toEqual([]);
  });

  test.each([
    '// The follower retries.',
    '// Which lines are long-standing does not matter.',
    '// The write is right.',
    'const position = queuePosition(entries, candidate);',
  ])('allow %j', (text) => {
    expect(check(text)).toEqual([]);
  });

  test('stay in the history of changes', () => {
    expect(check('- LeaseKeeper answers whoever asks', 'CHANGELOG.md')).toEqual([]);
  });
});
