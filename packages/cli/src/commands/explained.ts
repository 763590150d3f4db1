import { CliError } from '../cli-error.ts';

/**
 * Runs work on files and turns what is wrong with them into CliError `failed`; a fault of ours stays one. The
 * errors of the server's package go by name, since it may be missing. `file` is the one that the command line
 * named.
 */
export async function explained<T>(work: () => Promise<T>, file?: string): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (error.name === 'SnapshotFileError' || error.name === 'SnapshotError') {
      throw new CliError('failed', `${file}: ${error.message}`, { cause: error });
    }
    // These name the file in their message.
    const isForOperators = error.name === 'EngineError' || 'syscall' in error;
    throw isForOperators ? new CliError('failed', error.message, { cause: error }) : error;
  }
}
