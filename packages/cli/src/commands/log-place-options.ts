import type { Command } from 'commander';
import { resolve } from 'node:path';
import { CliError } from '../cli-error.ts';
import type { CommandIo } from '../command-io.ts';
import type { ServerModule } from '../load-server.ts';

type LogPlace = Parameters<ServerModule['restoreSnapshot']>[1];

/** The location of a log, as parsed by commander. The flags have the names of those of `tenure serve`. */
export interface PlaceOptions {
  readonly dataDir?: string;
  readonly engine?: string;
  readonly engineSchema: string;
  readonly engineCacert: string;
  readonly engineCert: string;
  readonly engineKey: string;
  readonly engineUser: string;
  readonly enginePasswordFile: string;
}

/** Adds the options. `verb` begins their help texts. */
export function withPlace(command: Command, verb: string): Command {
  return command
    .option('--data-dir <DIR>', `${verb} data folder`)
    .option('--engine <URL>', `${verb} shared log: postgres://user@host/database or etcd://host:port/prefix`)
    .option('--engine-schema <NAME>', 'on PostgreSQL: the schema that holds the log', 'tenure')
    .option('--engine-cacert <FILE>', 'on etcd: PEM file with the certificate authorities of etcd', '')
    .option('--engine-cert <FILE>', 'on etcd: PEM file with the client certificate', '')
    .option('--engine-key <FILE>', 'on etcd: PEM file with its key', '')
    .option('--engine-user <NAME>', 'on etcd: the user; the password is in a file, or in TENURE_ENGINE_PASSWORD', '')
    .option('--engine-password-file <FILE>', 'on etcd: file whose first line is the password', '');
}

/**
 * The place of the log that the options name; undefined if they name none. Throws a CliError `usage` if they contradict
 * each other, or if the URL is of no engine.
 */
export function placeOf(options: PlaceOptions, env: CommandIo['env']): LogPlace | undefined {
  const { dataDir, engine, engineSchema: schema, engineCacert: cacert, engineCert: cert, engineKey: key } = options;
  const { engineUser: user, enginePasswordFile: passwordFile } = options;
  if (dataDir !== undefined && engine !== undefined) {
    throw new CliError('usage', '--data-dir and --engine name two places: give one of them');
  }
  if (dataDir !== undefined) return { kind: 'folder', dataDir: resolve(dataDir) };
  if (engine === undefined) return undefined;
  if (!/^(postgres(ql)?|etcd):\/\//.test(engine)) {
    const help = 'must be postgres://user@host:port/database or etcd://host:port/prefix; a folder is --data-dir';
    throw new CliError('usage', `--engine ${help}`);
  }
  // Without a user the variable may be meant for another program.
  const password = user === '' ? '' : (env['TENURE_ENGINE_PASSWORD'] ?? '');
  return { kind: 'shared', url: engine, schema, tls: { cacert, cert, key }, login: { user, password, passwordFile } };
}

/** The flags of `tenure serve` for the same location, without a password. */
export function startFlags(options: PlaceOptions): string {
  const { dataDir, engine = '', engineSchema, engineCacert, engineCert, engineKey } = options;
  const { engineUser, enginePasswordFile } = options;
  if (dataDir !== undefined) return `--data-dir ${dataDir}`;
  const flags: [string, string][] = [
    ['--engine', engine.replace(/^(\w+:\/\/[^:@/]*):[^@/]*@/, '$1:***@')],
    ['--engine-schema', engineSchema === 'tenure' ? '' : engineSchema],
    ['--engine-cacert', engineCacert],
    ['--engine-cert', engineCert],
    ['--engine-key', engineKey],
    ['--engine-user', engineUser],
    ['--engine-password-file', enginePasswordFile],
  ];
  return flags
    .filter(([, value]) => value !== '')
    .map((flag) => flag.join(' '))
    .join(' ');
}
