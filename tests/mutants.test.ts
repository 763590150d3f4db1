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
  /** The prefixes of test files: of those that run before a commit, and of the long ones. */
  readonly tests: readonly string[];
  readonly long: readonly string[];
  readonly mutants: readonly Mutant[];
}

const folder = join(repositoryRoot, 'tests/mutants');
const areas = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .map((name) => ({ name, ...(JSON.parse(readFileSync(join(folder, name), 'utf8')) as Area) }));
const mutants = areas.flatMap((area) => area.mutants);

/** A mutant of the simulation: `rule` names the checkers that are meant to find it. */
interface SimulatedMutant extends Partial<Edit> {
  readonly name: string;
  readonly rule: Text;
  readonly files?: readonly Edit[];
}

interface Edit {
  readonly file: string;
  readonly find: Text;
  readonly replace: Text;
}

const simulationFolder = join(repositoryRoot, 'simulation/mutants');
const simulatedMutants = readdirSync(simulationFolder)
  .filter((name) => name.endsWith('.json'))
  .flatMap((name) => JSON.parse(readFileSync(join(simulationFolder, name), 'utf8')) as SimulatedMutant[]);

function editsOf({ file, find, replace, files = [] }: SimulatedMutant): readonly Edit[] {
  if (file === undefined || find === undefined || replace === undefined) return files;
  return [{ file, find, replace }, ...files];
}

const read = (path: string): string => (existsSync(path) ? readFileSync(path, 'utf8') : '');
const joined = (text: Text): string => [text].flat().join('\n');
const isThere = (prefix: string): boolean => {
  const path = join(repositoryRoot, prefix);
  const [parent, name] = [join(path, '..'), prefix.split('/').at(-1) ?? ''];
  return existsSync(parent) && readdirSync(parent).some((each) => each.startsWith(name));
};

/** scripts/mutants.mjs inserts these defects, but runs rarely. This test reports early when the code has changed. */
describe('the list of mutants', () => {
  test.each(mutants)('can insert: $name', ({ file, text, replacement, finder }) => {
    const source = read(join(repositoryRoot, file));
    expect(source.split(joined(text)).length - 1, `occurrences of its text in ${file}`).toBe(1);
    expect(joined(replacement)).not.toBe(joined(text));
    expect(existsSync(join(repositoryRoot, finder)), `${finder} exists`).toBe(true);
  });

  test('has unique names, and the tests of each area', () => {
    expect(new Set(mutants.map(({ name }) => name)).size).toBe(mutants.length);
    for (const { name, area, tests, long } of areas) {
      expect(name).toBe(`${area}.json`);
      for (const prefix of [...tests, ...long]) expect(isThere(prefix), prefix).toBe(true);
    }
  });
});

/** `npm run simulate -- --mutants` inserts these while it bundles the simulation. */
describe('the list of mutants of the simulation', () => {
  test.each(simulatedMutants)('can insert: $name', (mutant) => {
    expect([mutant.rule].flat().length).toBeGreaterThan(0);
    expect(editsOf(mutant).length).toBeGreaterThan(0);
    for (const { file, find, replace } of editsOf(mutant)) {
      const source = read(join(repositoryRoot, file));
      expect(source.split(joined(find)).length - 1, `occurrences of its text in ${file}`).toBe(1);
      expect(joined(replace)).not.toBe(joined(find));
    }
  });

  test('is named rightly in its README', () => {
    const names = new Set(simulatedMutants.map(({ name }) => name));
    const spans = read(join(simulationFolder, 'README.md')).matchAll(/`([^`\n]+)`/g);
    const quoted = [...spans].map(([, span]) => span).filter((span) => span?.includes(' '));
    expect(quoted.length).toBeGreaterThan(10);
    expect(quoted.filter((name) => !names.has(name ?? ''))).toEqual([]);
  });

  test('has unique names', () => {
    expect(new Set(simulatedMutants.map(({ name }) => name)).size).toBe(simulatedMutants.length);
  });
});
