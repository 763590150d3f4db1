import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { repositoryRoot } from './tidy/repository.ts';

/** A line, or several. */
type Text = string | readonly string[];

interface Mutant {
  readonly name: string;
  readonly file: string;
  readonly text: Text;
  readonly replacement: Text;
  readonly finder: string;
}

interface Area {
  readonly area: string;
  /** What the names of test files begin with: of those that are run before a commit, and of the long ones. */
  readonly tests: readonly string[];
  readonly long: readonly string[];
  readonly mutants: readonly Mutant[];
}

const folder = join(repositoryRoot, 'tests/mutants');
const areas = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .map((name) => ({ name, ...(JSON.parse(readFileSync(join(folder, name), 'utf8')) as Area) }));
const mutants = areas.flatMap((area) => area.mutants);

const read = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '');
const joined = (text: Text): string => [text].flat().join('\n');
const isThere = (prefix: string): boolean => {
  const path = join(repositoryRoot, prefix);
  const [parent, name] = [join(path, '..'), prefix.split('/').at(-1) ?? ''];
  return existsSync(parent) && readdirSync(parent).some((each) => each.startsWith(name));
};

/** What scripts/mutants.mjs plants: it does so seldom, and would find out late that the code has changed. */
describe('the list of mutants', () => {
  test.each(mutants)('can plant: $name', ({ file, text, replacement, finder }) => {
    const source = read(join(repositoryRoot, file));
    expect(source.split(joined(text)).length - 1, `how often its text stands in ${file}`).toBe(1);
    expect(joined(replacement)).not.toBe(joined(text));
    expect(existsSync(join(repositoryRoot, finder)), `${finder} is there`).toBe(true);
  });

  test('gives each a name of its own, and says what is run for its area', () => {
    expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length);
    for (const { name, area, tests, long } of areas) {
      expect(name).toBe(`${area}.json`);
      for (const prefix of [...tests, ...long]) expect(isThere(prefix), prefix).toBe(true);
    }
  });
});
