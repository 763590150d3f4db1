import { errorCatalogue } from '@tenure/protocol';
import type { CallError } from '../world/client-connection.ts';

/**
 * What a failed call says about its request:
 * - `notDone`: the server says that the request had no effect and will have none, so that a client may send it again.
 * - `unknown`: it may have taken effect, or may still do so.
 * - `defect`: an answer that no server gives unless it has a bug.
 */
export type RefusalKind = 'notDone' | 'unknown' | 'defect';

/** Codes of answers about the request itself, and of a refusal before the request was proposed. */
const notDone: ReadonlySet<number> = new Set([3, 5, 7, 8, 9, 11, 16]);
/** Unavailable has several meanings; these texts say that nothing was done. All others leave it open. */
const notDoneTexts: ReadonlySet<string> = new Set([errorCatalogue.LeaderChanged.text, errorCatalogue.NoLeader.text]);
const open: ReadonlySet<number> = new Set([1, 4, 14]);

export function refusalKind({ code, message, fromServer }: CallError): RefusalKind {
  if (!fromServer) return 'unknown';
  if (notDone.has(code) || (code === 14 && notDoneTexts.has(message))) return 'notDone';
  return open.has(code) ? 'unknown' : 'defect';
}
