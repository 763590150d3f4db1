import { CliError } from '../cli-error.ts';

/**
 * Runs work on files. An error of the files becomes a CliError `failed`; any other error is a bug and is rethrown.
 * Errors of the server's package are recognised by name, since the package may be missing. `file` is the path from the
 * command line.
 */
export async function explained<T>(work: () => Promise<T>, file?: string): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (error.name === 'SnapshotFileError' || error.name === 'SnapshotError') {
      throw new CliError('failed', `${file}: ${error.message}`, { cause: error });
    }
    // The messages of these errors name the file.
    const isForOperators = error.name === 'EngineError' || 'syscall' in error;
    throw isForOperators ? new CliError('failed', error.message, { cause: error }) : error;
  }
}
