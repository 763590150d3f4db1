import { resolve } from 'node:path';
import { jwtSignMethods, parseAuthToken } from './auth-token.ts';
import type { AutoCompactionMode } from './auto-compaction.ts';
import { ConfigError } from './config-error.ts';
import { parseGoDurationMs } from '@tenure/protocol';
import { parseAdvertiseUrls, parseListenUrls } from './listen-url.ts';
import { maxMemberNameChars } from './member-address.ts';
import { peerSettings } from './peer-settings.ts';
import type { EngineName, LogLevel, ReadMode } from './server-config.ts';
import { oneOf, setting, trueOrFalse, wholeNumber } from './setting.ts';
import { tlsSettings } from './tls-settings.ts';
import { webSettings } from './web-settings.ts';

const minuteMs = 60_000;
const mebibyte = 1024 * 1024;
/** Far above the requests of etcd's clients, far below the size at which a few requests would fill the memory. */
const largestRequestBytes = 128 * mebibyte;

/**
 * Every setting of the server. The key, in kebab-case, is the flag; in upper case, after TENURE_, the environment
 * variable.
 */
export const settings = {
  name: setting({
    group: 'Member',
    value: 'NAME',
    fallback: 'default',
    help: 'Name of this member, as listings show it.',
    parse: parseMemberName,
  }),
  clusterId: setting({
    group: 'Member',
    value: 'ID',
    fallback: '',
    fallbackShown: 'that of the log',
    help: 'Hex id of the cluster that the log must be of: with any other log, or an empty one, the start is refused.',
    parse: parseClusterId,
  }),
  engine: setting({
    group: 'Storage',
    value: 'file|memory|URL',
    fallback: 'file',
    help:
      'Where the log is stored: "file" is durable on this machine, "memory" forgets everything when it stops, ' +
      'postgres://user@host:port/database and etcd://host:port,host:port/prefix are shared by several servers.',
    parse: parseEngine,
  }),
  dataDir: setting({
    group: 'Storage',
    value: 'DIR',
    fallback: 'tenure-data',
    help: 'Folder of the log and its snapshots, made if it is missing (0700). One process at a time may use it.',
    parse: (text: string) => resolve(nonEmpty(text)),
  }),
  snapshotCount: setting({
    group: 'Storage',
    value: 'N',
    fallback: '100000',
    help: 'Take a snapshot, and trim the log, after this many entries.',
    parse: wholeNumber({ min: 1, max: Number.MAX_SAFE_INTEGER }),
  }),
  snapshotLogBytes: setting({
    group: 'Storage',
    value: 'BYTES',
    fallback: String(64 * mebibyte),
    help: 'Take a snapshot, and trim the log, after this many bytes of entries.',
    parse: wholeNumber({ min: 4096, max: Number.MAX_SAFE_INTEGER }),
  }),
  listenClientUrls: setting({
    group: 'Clients',
    value: 'URL,...',
    fallback: 'http://127.0.0.1:2379',
    help:
      'Addresses to listen on, https:// with TLS and http:// without; port 0 takes a free one. Until authentication ' +
      'is enabled every client that reaches them may do everything.',
    parse: parseListenUrls,
  }),
  advertiseClientUrls: setting({
    group: 'Clients',
    value: 'URL,...',
    fallback: '',
    fallbackShown: 'the addresses that are listened on',
    help: 'Addresses that clients are told to use. Without --listen-peer-urls other servers use them, too.',
    parse: parseAdvertiseUrls,
  }),
  ...tlsSettings,
  ...peerSettings,
  ...webSettings,
  watchProgressNotifyInterval: setting({
    group: 'Clients',
    value: 'DURATION',
    fallback: '10m',
    help: 'How often an idle watch that asked for progress hears of it.',
    parse: durationMs({ minMs: 100, maxMs: 24 * 60 * minuteMs }),
  }),
  authToken: setting({
    group: 'Authentication',
    value: 'simple|jwt,...',
    fallback: 'simple',
    help:
      'How users are identified after they have logged in. "simple": random tokens, which a server forgets when it ' +
      'stops. jwt,priv-key=FILE,sign-method=METHOD: signed JSON Web Tokens, with the options pub-key=FILE (alone on ' +
      `a server that issues none) and ttl=5m. METHOD is one of ${jwtSignMethods.join(', ')}; for HS256 and the like ` +
      'FILE holds the secret. Give all servers the same.',
    parse: parseAuthToken,
  }),
  authTokenTtl: setting({
    group: 'Authentication',
    value: 'SECONDS',
    fallback: '300',
    help: 'How long a simple token stays valid without use.',
    parse: wholeNumber({ min: 1, max: 365 * 86_400 }),
  }),
  bcryptCost: setting({
    group: 'Authentication',
    value: 'N',
    fallback: '10',
    help: "Cost of hashing a password, in etcd's numbers: each step doubles it. The hash is scrypt; 10 takes 32 MiB.",
    parse: wholeNumber({ min: 4, max: 12 }),
  }),
  minLeaseTtl: setting({
    group: 'Leases',
    value: 'DURATION',
    fallback: '100ms',
    help: 'Shortest TTL that is granted; shorter ones are raised to it, and the reply says so.',
    parse: durationMs({ minMs: 1, maxMs: 24 * 60 * minuteMs }),
  }),
  heartbeatInterval: setting({
    group: 'Leases',
    value: 'DURATION',
    fallback: '200ms',
    help:
      'How often cluster time is written to the log: while leases exist, and on a shared log always (400ms at most ' +
      'there). A plain number means milliseconds.',
    parse: (text: string) => durationMs({ minMs: 10, maxMs: 10_000 })(/^\d+$/.test(text) ? `${text}ms` : text),
  }),
  electionTimeout: setting({
    group: 'Leases',
    value: 'DURATION',
    fallback: '1000ms',
    help:
      'On a shared log: how long a server hears no leader before it claims; never less than 1000ms, since the last ' +
      'leader may act until then. A plain number: milliseconds.',
    parse: (text: string) => durationMs({ minMs: 100, maxMs: 60_000 })(/^\d+$/.test(text) ? `${text}ms` : text),
  }),
  engineSchema: setting({
    group: 'Storage',
    value: 'NAME',
    fallback: 'tenure',
    help: 'On PostgreSQL: the schema that holds the log. Several clusters in one database have one each.',
    parse: nonEmpty,
  }),
  engineDedicated: setting({
    group: 'Storage',
    value: 'true|false',
    fallback: 'false',
    help: 'On etcd: nothing else is kept there, so that its old revisions may be compacted with the log.',
    isSwitch: true,
    parse: trueOrFalse,
  }),
  engineCacert: setting({
    group: 'Storage',
    value: 'FILE',
    fallback: '',
    fallbackShown: 'none, and without a certificate no TLS',
    help: "On etcd: PEM file with the authorities that sign etcd's certificates; the connection uses TLS.",
    parse: (text: string) => text,
  }),
  engineCert: setting({
    group: 'Storage',
    value: 'FILE',
    fallback: '',
    fallbackShown: 'none',
    help: 'On etcd: PEM file with the certificate that this server shows, with --engine-key.',
    parse: (text: string) => text,
  }),
  engineKey: setting({
    group: 'Storage',
    value: 'FILE',
    fallback: '',
    fallbackShown: 'none',
    help: 'On etcd: PEM file with the key of --engine-cert.',
    parse: (text: string) => text,
  }),
  engineUser: setting({
    group: 'Storage',
    value: 'NAME',
    fallback: '',
    fallbackShown: 'the one in --engine, if there is one',
    help: 'On etcd with authentication: the user that may read and write the prefix.',
    parse: (text: string) => text,
  }),
  enginePasswordFile: setting({
    group: 'Storage',
    value: 'FILE',
    fallback: '',
    fallbackShown: 'the environment variable TENURE_ENGINE_PASSWORD',
    help: 'On etcd with authentication: a file whose first line is the password of --engine-user.',
    parse: (text: string) => text,
  }),
  reads: setting({
    group: 'Leases',
    value: 'log|lease',
    fallback: 'log',
    help:
      'On a shared log: "log" answers a linearizable read when an append that began after it has come back; "lease" ' +
      'lets the leader answer at once while its leader lease holds, which is wrong if the speeds of clocks differ by ' +
      'more than a quarter. Give all servers the same.',
    parse: oneOf<ReadMode>('log', 'lease'),
  }),
  quotaBackendBytes: setting({
    group: 'Limits',
    value: 'BYTES',
    fallback: '0',
    fallbackShown: "half of V8's heap limit, at most 2 GiB",
    help: 'Size of the state in memory at which writes are refused (the NOSPACE alarm). 0 means the default.',
    parse: wholeNumber({ min: 0, max: Number.MAX_SAFE_INTEGER }),
  }),
  maxRequestBytes: setting({
    group: 'Limits',
    value: 'BYTES',
    fallback: '1572864',
    help: 'Largest request that is accepted.',
    parse: wholeNumber({ min: 1, max: largestRequestBytes }),
  }),
  maxTxnOps: setting({
    group: 'Limits',
    value: 'N',
    fallback: '128',
    help: 'Most operations in one transaction.',
    parse: wholeNumber({ min: 1, max: 100_000 }),
  }),
  autoCompactionMode: setting({
    group: 'Limits',
    value: 'periodic|revision',
    fallback: 'periodic',
    help: 'What --auto-compaction-retention counts: time or revisions.',
    parse: oneOf<AutoCompactionMode>('periodic', 'revision'),
  }),
  autoCompactionRetention: setting({
    group: 'Limits',
    value: 'RETENTION',
    fallback: '',
    fallbackShown: 'an hour, and less where history would take more than a quarter of the quota (etcd keeps all)',
    help:
      'History to keep: hours (1) or a duration (30m) if periodic, a count of revisions (1000) otherwise. 0: all of ' +
      'it, and a NOSPACE alarm stands until it is ended by hand.',
    parse: retentionText,
  }),
  auditLog: setting({
    group: 'Logs',
    value: 'FILE',
    fallback: '',
    fallbackShown: 'none',
    help: 'Append a JSON line per request to this file: who asked for what, of which keys, and whether it was allowed.',
    parse: (text: string) => (text === '' ? '' : resolve(text)),
  }),
  logLevel: setting({
    group: 'Logs',
    value: 'debug|info|warn|error',
    fallback: 'warn',
    help: 'What to log. Logs are JSON lines on stderr.',
    parse: oneOf<LogLevel>('debug', 'info', 'warn', 'error'),
  }),
} as const;

export type SettingName = keyof typeof settings;

/** The value of each setting, by name, before related ones are combined. */
export type SettingValues = { readonly [Name in SettingName]: ReturnType<(typeof settings)[Name]['parse']> };

function nonEmpty(text: string): string {
  if (text.trim() === '' || text.includes('\0')) throw new ConfigError('must not be empty');
  return text;
}

function parseMemberName(text: string): string {
  if (text.length > maxMemberNameChars) throw new ConfigError(`must have at most ${maxMemberNameChars} characters`);
  return nonEmpty(text);
}

function parseEngine(text: string): EngineName {
  if (text === 'file' || text === 'memory') return text;
  if (text.startsWith('postgres://') || text.startsWith('postgresql://')) return text as EngineName;
  if (text === 'postgres') throw new ConfigError('must be an address: postgres://user@host:port/database');
  if (text.startsWith('etcd://')) return text as EngineName;
  if (text === 'etcd') throw new ConfigError('must be an address: etcd://host:port,host:port/prefix');
  throw new ConfigError('must be file, memory, postgres://user@host:port/database, or etcd://host:port/prefix');
}

function parseClusterId(text: string): bigint | undefined {
  if (text === '') return undefined;
  if (!/^[0-9a-f]{1,16}$/i.test(text)) throw new ConfigError('must be 1 to 16 hex digits');
  return BigInt(`0x${text}`);
}

function durationMs(limits: { minMs: number; maxMs: number }): (text: string) => number {
  return (text) => {
    const ms = parseGoDurationMs(text);
    if (ms === undefined) throw new ConfigError('must be a duration, such as 300ms or 1h30m');
    if (!Number.isInteger(ms)) throw new ConfigError('must be a whole number of milliseconds');
    if (ms < limits.minMs || ms > limits.maxMs) {
      throw new ConfigError(`must be from ${limits.minMs}ms to ${limits.maxMs / 1000}s`);
    }
    return ms;
  };
}

// A negative retention made etcd loop; it is refused here, and other values are checked together with the mode.
function retentionText(text: string): string {
  if (text.startsWith('-')) throw new ConfigError('must not be negative');
  return text;
}
