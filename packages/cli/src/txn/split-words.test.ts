import fc from 'fast-check';
import { expect, test } from 'vitest';
import { splitWords } from './split-words.ts';

test('a line of quoted words is split into the same words', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 8 }).filter((each) => !each.includes('\n'));
  const quoted = (word: string): string => `"${word.replaceAll(/["\\]/g, '\\$&')}"`;
  fc.assert(
    fc.property(fc.array(text), (words) => {
      expect(splitWords(words.map(quoted).join('  '))).toEqual(words);
    }),
  );
});

test.each([
  ['put a b', ['put', 'a', 'b']],
  ["put 'a key' `a \\n value`", ['put', 'a key', 'a \\n value']],
  [String.raw`put "tab\tnew\nline" "\x41\u00e9\q"`, ['put', 'tab\tnew\nline', 'Aéq']],
  ['put k --lease=a1', ['put', 'k', '--lease=a1']],
  ['put k it\'s "" ', ['put', 'k', "it's", '']],
])('%s', (line, words) => expect(splitWords(line)).toEqual(words));

test.each(['put "a', "put 'a", 'put a "'])('%s does not end', (line) => {
  expect(() => splitWords(line)).toThrow('a quote does not end');
});
