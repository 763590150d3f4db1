import { dumpLog } from '../engines/file/log-inspection.ts';
import { decodeCommand } from '../replica/command-codec.ts';
import { decodeEntry } from '../replica/entry-codec.ts';
import { describeCommand } from './describe-command.ts';

/** One entry of the log, for an operator. */
export interface DescribedEntry {
  readonly index: number;
  readonly hash: string;
  readonly file: string;
  /** The file offset of its record. */
  readonly offset: number;
  readonly bytes: number;
  /** Undefined when this version cannot read the entry; then `commands` has the reason. */
  readonly epoch: number | undefined;
  /** Cluster time. */
  readonly timeMs: number | undefined;
  /** One line each; values are left out. */
  readonly commands: readonly string[];
}

/**
 * The entries with an index in [from, to] of the log in a data folder, in order. Changes nothing, and may be used while
 * a server runs. Stops with EngineError `damaged` at the first unreadable place.
 */
export async function* describeLog(
  dataFolder: string,
  range: { readonly from?: number; readonly to?: number },
): AsyncGenerator<DescribedEntry> {
  for await (const { index, hash, file, offset, bytes } of dumpLog(dataFolder, range)) {
    yield { index, hash, file, offset, bytes: bytes.length, ...describeEntry(bytes) };
  }
}

function describeEntry(bytes: Uint8Array): Pick<DescribedEntry, 'epoch' | 'timeMs' | 'commands'> {
  try {
    const { headers, commands } = decodeEntry(bytes);
    return { ...headers, commands: commands.map((command) => describeCommand(decodeCommand(command))) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { epoch: undefined, timeMs: undefined, commands: [`cannot be read: ${reason}`] };
  }
}
