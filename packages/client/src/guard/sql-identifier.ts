import { UsageError } from '../errors/usage-error.ts';

/** The name of a table or column that needs no quotes in SQL, possibly with its schema. */
export function sqlIdentifier(name: string): string {
  if (!/^[A-Za-z_]\w*(\.[A-Za-z_]\w*){0,2}$/.test(name)) {
    throw new UsageError(`${JSON.stringify(name)} is not an SQL name: use letters, digits and _`);
  }
  return name;
}
