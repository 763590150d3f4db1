import type { Command } from 'commander';
import { readFileSync } from 'node:fs';
import type { EtcdOptions } from 'tenure/etcd';
import { CliError } from './cli-error.ts';
import type { CommandIo } from './command-io.ts';
import { parseDurationMs } from './duration.ts';
import { loginOf, withLoginOptions } from './login.ts';

/** The options as parsed by commander. */
interface ConnectionFlags {
  readonly endpoints: string;
  readonly commandTimeout: string;
  readonly cacert: string;
  readonly cert: string;
  readonly key: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Adds the options that all client commands share. An empty variable counts as unset, as it does for the server. */
export function withConnectionOptions(command: Command, env: Environment): Command {
  const given = (name: string, fallback = ''): string => env[name] || fallback;
  const connecting = command
    .option(
      '--endpoints <HOST:PORT,...>',
      'servers to try, in this order; https:// before one asks for TLS with all [TENURE_ENDPOINTS]',
      given('TENURE_ENDPOINTS', '127.0.0.1:2379'),
    )
    .option(
      '--command-timeout <DURATION>',
      'how long one call may take [TENURE_COMMAND_TIMEOUT]',
      given('TENURE_COMMAND_TIMEOUT', '5s'),
    )
    .option(
      '--cacert <FILE>',
      'TLS: PEM file with the trusted certificate authorities [TENURE_CACERT]',
      given('TENURE_CACERT'),
    )
    .option('--cert <FILE>', 'TLS: PEM file with the client certificate [TENURE_CERT]', given('TENURE_CERT'))
    .option('--key <FILE>', 'TLS: PEM file with its key [TENURE_KEY]', given('TENURE_KEY'));
  return withLoginOptions(connecting);
}

/**
 * The options of EtcdClient; a password may be asked for. Rejects with a CliError `usage`, or `failed` for a file that
 * can't be read.
 */
export async function connectionOptions(
  command: Command,
  io: CommandIo,
): Promise<EtcdOptions & { readonly timeoutMs: number }> {
  const flags = command.optsWithGlobals<ConnectionFlags>();
  const timeoutMs = parseDurationMs('--command-timeout', flags.commandTimeout);
  if (timeoutMs === 0) throw new CliError('usage', '--command-timeout must be greater than zero');
  if ((flags.cert === '') !== (flags.key === '')) throw new CliError('usage', '--cert and --key go together');
  const tls = {
    ...(flags.cacert === '' ? {} : { ca: pem('--cacert', flags.cacert) }),
    ...(flags.cert === '' ? {} : { cert: pem('--cert', flags.cert), key: pem('--key', flags.key) }),
  };
  return {
    endpoints: flags.endpoints,
    timeoutMs,
    failFast: true,
    ...(Object.keys(tls).length === 0 ? {} : { tls }),
    ...(await loginOf(command, io)),
  };
}

function pem(flag: string, path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    throw new CliError('failed', `${flag}: ${words}`, { cause: error });
  }
}
