import type { SeededRandom } from '@tenure/test-support';
import type { Coverage } from '../world/coverage.ts';
import type { DiskFaults } from './disk-faults.ts';
import { SimulatedFile } from './simulated-file.ts';

/** About the length of a record. */
const rottenBytes = 100;

/** A change of a name that a sync of the folder makes durable. */
type NameChange =
  | { readonly kind: 'add'; readonly name: string; readonly file: SimulatedFile }
  | { readonly kind: 'remove'; readonly name: string }
  | { readonly kind: 'rename'; readonly from: string; readonly to: string; readonly file: SimulatedFile };

/** One folder on a disk that keeps, when the power is lost, what was synced and any part of what was not. */
export class SimulatedDisk {
  readonly faults: DiskFaults;
  /** The bytes that all files together may have. */
  roomBytes = Infinity;
  readonly #random: SeededRandom;
  readonly #coverage: Coverage;
  readonly #names = new Map<string, SimulatedFile>();
  readonly #storedNames = new Map<string, SimulatedFile>();
  #unsyncedNames: NameChange[] = [];
  #powerLossAfter = Infinity;
  #onPowerLoss: () => void = () => {};

  constructor(faults: DiskFaults, random: SeededRandom, coverage: Coverage) {
    this.faults = faults;
    this.#random = random;
    this.#coverage = coverage;
  }

  get names(): readonly string[] {
    return [...this.#names.keys()];
  }

  get nameChanges(): number {
    return this.#unsyncedNames.length;
  }

  get usedBytes(): number {
    let bytes = 0;
    for (const file of this.#names.values()) bytes += file.length;
    return bytes;
  }

  file(name: string): SimulatedFile | undefined {
    return this.#names.get(name);
  }

  create(name: string): SimulatedFile {
    const file = new SimulatedFile();
    this.#change({ kind: 'add', name, file });
    return file;
  }

  remove(name: string): void {
    this.#change({ kind: 'remove', name });
  }

  rename(from: string, to: string): void {
    const file = this.#names.get(from);
    if (file !== undefined) this.#change({ kind: 'rename', from, to, file });
  }

  /** The first `count` changes of names are on the disk. */
  syncNames(count: number): void {
    for (const change of this.#unsyncedNames.splice(0, count)) applyName(this.#storedNames, change);
  }

  /** The first `count` changes of the file are on the disk, or the disk lies about one. */
  syncFile(file: SimulatedFile, count: number): void {
    const random = this.#random;
    let writtenAt = 0;
    file.sync(count, (position) => {
      writtenAt = position;
      if (this.faults.lies('lost write')) return 'lost';
      if (!this.faults.lies('misdirected write')) return 'none';
      return Math.max(0, position + 64 * random.integer(-40, 40));
    });
    if (file.storedLength > 0 && this.faults.lies('bit flipped at rest')) this.#rot(file, writtenAt);
  }

  /** Often in what was written last: such damage is like an unfinished write. */
  #rot(file: SimulatedFile, writtenAt: number): void {
    const random = this.#random;
    const place = random.chance(0.5) ? writtenAt + random.below(rottenBytes) : random.below(file.storedLength);
    file.rot(8 * Math.min(place, file.storedLength - 1) + random.below(8));
    this.losePowerSoon();
  }

  /** Mostly the power is lost before much more is written, which would show a damage that was done now. */
  losePowerSoon(): void {
    if (this.#random.chance(0.7)) this.#powerLossAfter = Math.min(this.#powerLossAfter, this.#random.below(4));
  }

  failSync(file: SimulatedFile): void {
    file.failSync(this.#random);
  }

  /** Calls `onPowerLoss` in the middle of the operation after `operations` more of them. */
  losePowerAfter(operations: number, onPowerLoss: () => void): void {
    this.#powerLossAfter = operations;
    this.#onPowerLoss = onPowerLoss;
  }

  /** Counts an operation. True if the power is lost in it. */
  operates(): boolean {
    this.#powerLossAfter -= 1;
    if (this.#powerLossAfter >= 0) return false;
    this.#powerLossAfter = Infinity;
    this.#onPowerLoss();
    return true;
  }

  losePower(): void {
    const random = this.#random;
    const keptRate = random.pick([0, 0.5, 1]);
    for (const change of this.#unsyncedNames) {
      if (random.chance(keptRate)) applyName(this.#storedNames, change);
      else this.#coverage.count('disk: name change lost');
    }
    this.#unsyncedNames = [];
    this.#names.clear();
    for (const [name, file] of this.#storedNames) {
      this.#names.set(name, file);
      if (file.losePower(random)) this.#coverage.count('disk: write torn');
    }
  }

  /** The process was killed and the system lives on: it may read files from the disk again. */
  evict(): void {
    for (const file of this.#names.values()) file.evict();
  }

  #change(change: NameChange): void {
    applyName(this.#names, change);
    this.#unsyncedNames.push(change);
  }
}

function applyName(names: Map<string, SimulatedFile>, change: NameChange): void {
  if (change.kind === 'add') names.set(change.name, change.file);
  else if (change.kind === 'remove') names.delete(change.name);
  else {
    names.delete(change.from);
    names.set(change.to, change.file);
  }
}
