import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { describe, expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
const guides = readdirSync(join(root, 'docs/guides')).map((name) => `docs/guides/${name}`);
const pages = [...guides, 'docs/library.md', 'packages/client/README.md', 'README.md'];

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

/** The examples that a page links to. */
function linked(page: string): string[] {
  const links = [...read(page).matchAll(/\]\(((?:\.\.\/)*examples\/[\w.-]+\.ts)\)/g)].map(([, link = '']) => link);
  return [...new Set(links.map((link) => posix.join(posix.dirname(page), link)))];
}

function blocks(text: string): string[] {
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, block = '']) => block);
}

/** Whether the lines occur consecutively in the text, with the same change of indentation for all. */
function quotes(text: string, block: string): boolean {
  return ['', '  ', '    '].some((indent) => `\n${text}`.includes(`\n${block.replaceAll(/^(?=.)/gm, indent)}`));
}

describe.each(pages)('the code in %s', (page) => {
  test('matches the linked examples, which CI runs', () => {
    const examples = linked(page).map(read);
    expect(examples.length).toBeGreaterThan(0);
    expect(blocks(read(page)).length).toBeGreaterThan(0);
    for (const block of blocks(read(page))) {
      expect(
        examples.some((example) => quotes(example, block)),
        `not in an example that ${page} links to:\n${block}`,
      ).toBe(true);
    }
  });
});

test('every example has a guide that links to it', () => {
  const all = readdirSync(join(root, 'examples')).filter((name) => name.endsWith('.ts'));
  const shown = new Set(pages.flatMap(linked));
  expect(all.filter((name) => !shown.has(`examples/${name}`))).toEqual([]);
});

test('a line that is not in the example is detected', () => {
  expect(blocks('```ts\na();\n\nb();\n```\n')).toEqual(['a();\n\nb();\n']);
  expect(quotes('{\n  a();\n\n  b();\n}\n', 'a();\n\nb();\n')).toBe(true);
  expect(quotes('{\n  a();\n\n  b();\n}\n', 'a();\nb();\n')).toBe(false);
  expect(quotes('bba();\n', 'a();\n')).toBe(false);
});
