import { EngineError } from '../engine-error.ts';

/** A place where the stored data is inconsistent. */
export interface Damage {
  readonly in: 'log' | 'snapshot';
  /** Path of the file. */
  readonly file: string;
  /** Where in the file, in bytes. */
  readonly offset: number;
  /** In the log: the last entry before the damage that is known to be intact. */
  readonly lastGoodIndex: number | undefined;
  readonly what: string;
}

/** Damage as an EngineError, with the command that helps. */
export class DamageError extends EngineError {
  readonly damage: Damage;

  constructor(damage: Damage, help: string) {
    super('damaged', `${damage.file} is damaged at offset ${damage.offset}: ${damage.what} (${help})`);
    this.damage = damage;
  }
}

/** The text for an operator whose log is refused, when entries up to `recoverableIndex` can be kept. */
export function logHelp(folder: string, recoverableIndex: number): string {
  return (
    `nothing was changed; \`tenure log verify --data-dir ${folder}\` lists all damage, and ` +
    `\`tenure log truncate --data-dir ${folder} --after ${recoverableIndex}\` keeps what is whole up to entry ` +
    `${recoverableIndex} and moves the rest, acknowledged or not, into a folder beside it`
  );
}

export const snapshotHelp =
  'nothing was changed; if `tenure log verify` says that the log goes back to its start, moving this file away is ' +
  'enough, otherwise restore a saved snapshot into a new folder with `tenure snapshot restore`';
