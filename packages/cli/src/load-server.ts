import { CliError } from './cli-error.ts';

/** What `@tenure/server` exports. Nothing but its types is known before it is loaded, since it may be missing. */
export type ServerModule = Awaited<ReturnType<typeof importServer>>;

/**
 * The server's package, which whoever needs only a client does not install. Rejects with CliError that names the
 * command.
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

// Only the package itself: something that it needs and lacks is another fault, with another message.
function isMissing(error: unknown): boolean {
  if (!(error instanceof Error) || !('code' in error) || error.code !== 'ERR_MODULE_NOT_FOUND') return false;
  return /^Cannot find (?:package|module) '[^']*@tenure\/server/.test(error.message);
}
