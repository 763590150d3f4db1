/** What RFC 7541 counts for an entry besides its name and value. */
export const entryOverheadBytes = 32;

const fewestSlots = 16;

/** The entry with this number left the table. */
type EvictionListener = (name: string, value: string, number: number) => void;

/**
 * The last fields that one side of a connection has added, up to a size. Entries are numbered from 0 in the order of
 * their insertion. They stand in a ring, so that an eviction moves nothing.
 */
export class DynamicTable {
  /** Changes with every insertion, eviction and change of the size. */
  generation = 0;
  /** The number that the next entry gets. */
  nextNumber = 0;
  length = 0;
  bytes = 0;
  maxBytes: number;

  /** The ring has a power of two of slots; an entry stands in the slot of its number modulo that. */
  #names: string[] = [];
  #values: string[] = [];
  #mask = fewestSlots - 1;
  readonly #onEvict: EvictionListener | undefined;

  constructor(maxBytes: number, onEvict?: EvictionListener) {
    this.maxBytes = maxBytes;
    this.#onEvict = onEvict;
    this.#allocate(fewestSlots);
  }

  /** `age`: 0 for the newest entry, less than `length`. */
  nameAt(age: number): string {
    return this.#names[(this.nextNumber - 1 - age) & this.#mask] as string;
  }

  valueAt(age: number): string {
    return this.#values[(this.nextNumber - 1 - age) & this.#mask] as string;
  }

  /** An entry that is larger than the table empties it and is not added. */
  add(name: string, value: string): void {
    const bytes = name.length + value.length + entryOverheadBytes;
    if (bytes > this.maxBytes) {
      this.clear();
      return;
    }
    this.generation++;
    this.#evictDownTo(this.maxBytes - bytes);
    if (this.length > this.#mask) this.#grow();
    const slot = this.nextNumber & this.#mask;
    this.#names[slot] = name;
    this.#values[slot] = value;
    this.nextNumber++;
    this.length++;
    this.bytes += bytes;
  }

  clear(): void {
    this.generation++;
    this.#evictDownTo(0);
  }

  setMaxBytes(maxBytes: number): void {
    this.generation++;
    this.maxBytes = maxBytes;
    this.#evictDownTo(maxBytes);
  }

  #evictDownTo(bytes: number): void {
    while (this.bytes > bytes) {
      const number = this.nextNumber - this.length;
      const slot = number & this.#mask;
      const name = this.#names[slot] as string;
      const value = this.#values[slot] as string;
      this.#names[slot] = '';
      this.#values[slot] = '';
      this.length--;
      this.bytes -= name.length + value.length + entryOverheadBytes;
      this.#onEvict?.(name, value, number);
    }
  }

  /** The size of the table limits the slots: each entry counts at least its overhead. */
  #grow(): void {
    const names = this.#names;
    const values = this.#values;
    const oldMask = this.#mask;
    this.#allocate((oldMask + 1) * 2);
    for (let number = this.nextNumber - this.length; number < this.nextNumber; number++) {
      this.#names[number & this.#mask] = names[number & oldMask] as string;
      this.#values[number & this.#mask] = values[number & oldMask] as string;
    }
  }

  #allocate(slots: number): void {
    this.#names = Array.from({ length: slots }, () => '');
    this.#values = Array.from({ length: slots }, () => '');
    this.#mask = slots - 1;
  }
}
