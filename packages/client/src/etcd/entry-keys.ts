import type { EntryKey } from '../backend/lease-backend.ts';

/**
 * The keys of entries: `tenure/lease/nightly/ID`. The name is escaped after its first slash, so that no key of one name
 * has the prefix of another.
 */
export class EntryKeys {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** The prefix of all entries of a name. */
  queuePrefix(name: string): string {
    const slashAt = name.indexOf('/');
    const path =
      slashAt < 0 ? `%2F${escaped(name)}` : `${escaped(name.slice(0, slashAt))}/${escaped(name.slice(slashAt + 1))}`;
    return `${this.#prefix}${path}/`;
  }

  entry({ name, id }: Pick<EntryKey, 'name' | 'id'>): string {
    return this.queuePrefix(name) + id;
  }
}

function escaped(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('/', '%2F');
}
