import type { SeededRandom } from '@tenure/test-support';
import { ByteContent } from './byte-content.ts';

/** The disk writes these as a whole or not at all. */
const sectorBytes = 512;

type Change =
  | { readonly kind: 'write'; readonly bytes: Buffer; readonly position: number }
  | { readonly kind: 'truncate'; readonly length: number };

/** How many changes reach the disk without a sync: of each sector, the first so many of its versions. */
type Survival = 'all' | 'none' | 'some' | 'front';
const survivals: readonly Survival[] = ['all', 'none', 'some', 'front'];

/** A file with the bytes that processes see, and those that are on the disk. */
export class SimulatedFile {
  #seen = new ByteContent();
  #stored = new ByteContent();
  #unsynced: Change[] = [];

  get length(): number {
    return this.#seen.length;
  }

  get storedLength(): number {
    return this.#stored.length;
  }

  get changes(): number {
    return this.#unsynced.length;
  }

  read(target: Uint8Array, position: number): number {
    return this.#seen.read(target, position);
  }

  write(bytes: Uint8Array, position: number): void {
    const copy = Buffer.from(bytes);
    this.#seen.write(copy, position);
    this.#unsynced.push({ kind: 'write', bytes: copy, position });
  }

  truncate(length: number): void {
    this.#seen.truncate(length);
    this.#unsynced.push({ kind: 'truncate', length });
  }

  /** The first `count` unsynced changes are on the disk, where `lie` does not take one of them away. */
  sync(count: number, lie: (position: number) => 'none' | 'lost' | number): void {
    for (const change of this.#unsynced.splice(0, count)) {
      const told = change.kind === 'write' ? lie(change.position) : 'none';
      if (told === 'lost') continue;
      if (typeof told === 'number' && change.kind === 'write') this.#stored.write(change.bytes, told);
      else apply(this.#stored, change);
    }
  }

  /** A sync failed: part of the changes is on the disk, and the system counts all of them as written. */
  failSync(random: SeededRandom): void {
    this.#store(random);
    this.#unsynced = [];
  }

  /** The system reads the file from the disk again, except for what it has yet to write. */
  evict(): void {
    this.#seen = this.#stored.clone();
    for (const change of this.#unsynced) apply(this.#seen, change);
  }

  /** Returns whether a part of the unsynced changes survived and another part did not. */
  losePower(random: SeededRandom): boolean {
    const isTorn = this.#store(random);
    this.#unsynced = [];
    this.#seen = this.#stored.clone();
    return isTorn;
  }

  /** One stored bit changes: it is seen at the next eviction. */
  rot(bit: number): void {
    this.#stored.flipBit(bit);
  }

  #store(random: SeededRandom): boolean {
    if (this.#unsynced.length === 0) return false;
    const how = random.pick(survivals);
    const versions = new Map<number, number>();
    let endBytes = this.#stored.length;
    for (const change of this.#unsynced) {
      if (change.kind === 'truncate') continue;
      endBytes = Math.max(endBytes, change.position + change.bytes.length);
      for (const { sector } of pieces(change)) versions.set(sector, (versions.get(sector) ?? 0) + 1);
    }
    let front = random.integer(0, versions.size);
    for (const [sector, count] of versions) {
      front -= 1;
      versions.set(sector, kept(how, count, front >= 0, random));
    }
    const before = this.#stored.length;
    const outcome = this.#applySurvivors(versions, how, random);
    // The length may be on the disk before the bytes are.
    if (random.chance(0.3) && before < endBytes && this.#stored.length < endBytes) this.#stored.truncate(endBytes);
    return outcome.stored > 0 && outcome.lost > 0;
  }

  #applySurvivors(versions: Map<number, number>, how: Survival, random: SeededRandom) {
    const outcome = { stored: 0, lost: 0 };
    for (const change of this.#unsynced) {
      if (change.kind === 'truncate') {
        if (how === 'all' || (how !== 'none' && random.chance(0.5))) this.#stored.truncate(change.length);
        continue;
      }
      for (const { sector, bytes, position } of pieces(change)) {
        const left = versions.get(sector) ?? 0;
        versions.set(sector, left - 1);
        if (left <= 0) outcome.lost += 1;
        else {
          outcome.stored += 1;
          this.#stored.write(bytes, position);
        }
      }
    }
    return outcome;
  }
}

function apply(content: ByteContent, change: Change): void {
  if (change.kind === 'truncate') content.truncate(change.length);
  else content.write(change.bytes, change.position);
}

function kept(how: Survival, count: number, isInFront: boolean, random: SeededRandom): number {
  if (how === 'all') return count;
  if (how === 'none') return 0;
  return how === 'front' ? (isInFront ? count : 0) : random.integer(0, count);
}

function* pieces(change: { readonly bytes: Buffer; readonly position: number }) {
  const { bytes, position: start } = change;
  for (let at = 0; at < bytes.length;) {
    const position = start + at;
    const end = Math.min(bytes.length, at + sectorBytes - (position % sectorBytes));
    yield { sector: Math.floor(position / sectorBytes), bytes: bytes.subarray(at, end), position };
    at = end;
  }
}
