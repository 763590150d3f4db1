import type { EngineTrouble } from './engine-trouble.ts';
import type { Position } from './log-engine.ts';

/**
 * - `conflict`: the log does not end at the expected position; `tail` is the actual end. Nothing was written.
 * - `unknown`: the connection broke during an append. The entries after `after` tell the outcome.
 * - `unavailable`: the database that keeps the log cannot be reached now, and the operation has certainly not taken
 * effect: an append was not written. The engine keeps reconnecting; try again later.
 * - `full`: there is no room for a snapshot. Nothing of it was stored, and the log continues as before.
 * - `fatal`: a write or sync failed on this machine. The process must stop; the engine refuses every further call.
 * - `diverged`: the log does not hold the position that the caller has applied. It lost or replaced a suffix.
 * - `trimmed`: the requested entries were removed; the snapshot replaces them.
 * - `damaged`: the stored data is inconsistent. The message names the place and the command that helps.
 * - `locked`: another process holds the log.
 * - `unusable`: the stored log is intact but not usable by this program: a newer format, a folder that other users may
 * read, no folder.
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
 * A refusal or failure of an engine. `message` is for an operator: it names the file and offset, and the command that
 * helps.
 */
export class EngineError extends Error {
  readonly code: EngineErrorCode;
  /** The end of the log, with `conflict`. */
  readonly tail: Position | undefined;
  /** The fault of the database that keeps the log, where that is the cause. */
  readonly trouble: EngineTrouble | undefined;

  constructor(code: EngineErrorCode, message: string, options: EngineErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'EngineError';
    this.code = code;
    this.tail = options.tail;
    this.trouble = options.trouble;
  }

  /** Whether the log as a whole is intact: the failed operation may succeed later, under another leader. */
  get isPassing(): boolean {
    return this.code === 'conflict' || this.code === 'unknown' || this.code === 'unavailable';
  }
}
