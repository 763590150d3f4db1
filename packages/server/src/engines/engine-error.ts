import type { EngineTrouble } from './engine-trouble.ts';
import type { Position } from './log-engine.ts';

/**
 * - `conflict`: the log does not end where the caller thought; `tail` says where it does. Nothing was written.
 * - `unknown`: the connection broke while an append was out. What follows `after` tells the outcome.
 * - `unavailable`: the database that keeps the log cannot be asked now, and what was asked for has certainly not been
 *   done: an append was not written. The engine goes on trying to reach it; ask again later.
 * - `full`: there is no room for a snapshot. Nothing of it was stored, and the log goes on as before.
 * - `fatal`: a write or sync failed on this machine. The process must stop; the engine answers nothing else any more.
 * - `diverged`: the log does not hold the position that the caller has applied. It lost or replaced a suffix.
 * - `trimmed`: the entries asked for are gone; the snapshot stands for them.
 * - `damaged`: what is stored contradicts itself. The message names the place and the command that helps.
 * - `locked`: another process holds the log.
 * - `unusable`: what is there is whole but not for this program: a newer format, a folder that others may read, no
 *   folder.
 * - `closed`: the engine was closed by its owner.
 */
export type EngineErrorCode =
  | 'conflict'
  | 'unknown'
  | 'unavailable'
  | 'full'
  | 'fatal'
  | 'diverged'
  | 'trimmed'
  | 'damaged'
  | 'locked'
  | 'unusable'
  | 'closed';

export interface EngineErrorOptions {
  readonly cause?: unknown;
  readonly tail?: Position;
  readonly trouble?: EngineTrouble;
}

/**
 * What an engine refuses or fails with. `message` is for an operator: it names the file and offset, and the command
 * that helps.
 */
export class EngineError extends Error {
  readonly code: EngineErrorCode;
  /** Where the log ends, with `conflict`. */
  readonly tail: Position | undefined;
  /** What is wrong with the database that keeps the log, where that is the cause. */
  readonly trouble: EngineTrouble | undefined;

  constructor(code: EngineErrorCode, message: string, options: EngineErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'EngineError';
    this.code = code;
    this.tail = options.tail;
    this.trouble = options.trouble;
  }

  /** Whether the log as a whole is well: what failed may succeed later, for whoever leads then. */
  get isPassing(): boolean {
    return this.code === 'conflict' || this.code === 'unknown' || this.code === 'unavailable';
  }
}
