import type { LoggedEntry } from '../../packages/server/src/engines/log-engine.ts';
import { decodeCommand } from '../../packages/server/src/replica/command-codec.ts';
import { decodeEntry } from '../../packages/server/src/replica/entry-codec.ts';
import type { Coverage } from '../world/coverage.ts';
import type { Violations } from '../world/violations.ts';
import { isNewer } from './older-version.ts';

export interface UpgradeCheckerOptions {
  readonly violations: Violations;
  readonly coverage: Coverage;
  /** The names of the servers that run an older version, or will when they start again. */
  readonly olderServers: () => readonly string[];
}

/**
 * Judges a log that servers of two versions share. U1: no entry holds a command that a server of the cluster does not
 * know, because that server stops there. U2: once every server knows a command, the cluster begins to use it.
 */
export class UpgradeChecker {
  readonly #options: UpgradeCheckerOptions;
  #isInUse = false;
  #isLeaderOlder: boolean | undefined;

  constructor(options: UpgradeCheckerOptions) {
    this.#options = options;
  }

  /** To be called when an entry becomes durable. `isByOlder`: the process that appended it runs an older version. */
  committed({ position: { index }, bytes }: LoggedEntry, isByOlder: boolean): void {
    const { violations, coverage } = this.#options;
    const [first] = decodeEntry(bytes).commands;
    if (first !== undefined && decodeCommand(first).kind === 'claim') this.#claimed(isByOlder);
    if (!isNewer(bytes)) return;
    if (!this.#isInUse) coverage.count('upgrade: a newer command is in use');
    this.#isInUse = true;
    const ignorant = this.#options.olderServers();
    if (ignorant.length > 0) violations.report('U1', `${ignorant.join(' and ')} cannot apply entry ${index}`);
  }

  /** To be called when every server has served for long enough. */
  finish(): void {
    const { violations, olderServers } = this.#options;
    if (this.#isInUse || olderServers().length > 0) return;
    violations.report('U2', 'every server knows the newest command, and the cluster does not use it');
  }

  #claimed(isByOlder: boolean): void {
    const { coverage } = this.#options;
    if (this.#isLeaderOlder === true && !isByOlder) coverage.count('upgrade: a newer leader followed an older one');
    if (this.#isLeaderOlder === false && isByOlder) coverage.count('upgrade: an older leader followed a newer one');
    this.#isLeaderOlder = isByOlder;
  }
}
