import type { EntryKey } from '../backend/lease-backend.ts';

/**
 * Where the entries of a name are: `tenure/lease/nightly/ID`. The name is escaped behind its first slash, so that the
 * keys of one name are never among those of another.
 */
export class EntryKeys {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** All entries of a name begin with this. */
  line(name: string): string {
    const slashAt = name.indexOf('/');
    const path =
      slashAt < 0 ? `%2F${escaped(name)}` : `${escaped(name.slice(0, slashAt))}/${escaped(name.slice(slashAt + 1))}`;
    return `${this.#prefix}${path}/`;
  }

  entry({ name, id }: Pick<EntryKey, 'name' | 'id'>): string {
    return this.line(name) + id;
  }
}

function escaped(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('/', '%2F');
}
