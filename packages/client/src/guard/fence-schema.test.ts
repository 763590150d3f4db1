import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { mysqlFences, mysqlFencesRepair, postgresFences, sqliteFences } from './fence-schema.ts';

const table = 'tenure_fences';

test.each([
  ['postgres', [postgresFences(table)]],
  ['mysql', [mysqlFences(table), ...mysqlFencesRepair(table)]],
  ['sqlite', [sqliteFences(table)]],
])('the SQL file for %s has the same statements', (dialect, statements) => {
  const text = readFileSync(new URL(`../../sql/${dialect}/0002-fences.sql`, import.meta.url), 'utf8');
  const [head = '', ...rest] = text.split(/^(?=CREATE|ALTER|DO)/m);
  expect(head).toMatch(/^(-- .*\n)+$/);
  expect(rest.join('')).toBe(statements.map((statement) => `${statement};\n`).join('\n'));
});
