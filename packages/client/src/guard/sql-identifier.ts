import { UsageError } from '../errors/usage-error.ts';

/** A table or column as it may stand in SQL without quotes, perhaps with its schema. */
export function sqlIdentifier(name: string): string {
  if (!/^[A-Za-z_]\w*(\.[A-Za-z_]\w*){0,2}$/.test(name)) {
    throw new UsageError(`${JSON.stringify(name)} can't stand in SQL as a name: use letters, digits and _`);
  }
  return name;
}
