import { CliError } from './cli-error.ts';

/** The exports of `@tenure/server`. Only its types are imported statically, since the package may be missing. */
export type ServerModule = Awaited<ReturnType<typeof importServer>>;

/**
 * Loads the server's package, which is not installed where only a client is needed. Rejects with a CliError that has
 * the command to install it.
 */
export async function loadServer(): Promise<ServerModule> {
  try {
    return await importServer();
  } catch (error) {
    if (!isMissing(error)) throw error;
    const message =
      'the server is a package of its own and is missing: npm install @tenure/server (in a checkout: npm run build)';
    throw new CliError('failed', message, { cause: error });
  }
}

function importServer() {
  return import('@tenure/server');
}

// Only for the package itself: a missing dependency of it is a different error with its own message.
function isMissing(error: unknown): boolean {
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'ERR_MODULE_NOT_FOUND') return false;
  return /^Cannot find (?:package|module) '[^']*@tenure\/server/.test(error.message);
}
