import { getHeapStatistics } from 'node:v8';
import { parseAutoCompaction } from './auto-compaction.ts';
import { joinClientTls, listOf, strayTls } from './client-tls.ts';
import { ConfigError } from './config-error.ts';
import { flagOf, readFlags, variableOf } from './flags.ts';
import { helpText } from './help-text.ts';
import { formatUrl, isLoopback } from './listen-url.ts';
import { joinPeerTls, strayPeerTls } from './peer-tls.ts';
import type { ServerConfig } from './server-config.ts';
import type { Setting } from './setting.ts';
import { type SettingName, type SettingValues, settings } from './settings.ts';

/** The result of the command line. Warnings are one line each, for the operator. */
export type ConfigOutcome =
  | { readonly kind: 'config'; readonly config: ServerConfig; readonly warnings: readonly string[] }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'version' }
  /** One line that names the flag or variable, its value, and the fault. */
  | { readonly kind: 'refused'; readonly message: string };

export interface ConfigSource {
  /** The arguments after `serve`. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Merges flags and environment (flags take precedence) into a frozen configuration. Never throws for bad input. */
export function parseServerConfig(source: ConfigSource): ConfigOutcome {
  try {
    const flags = readFlags(source.argv);
    if (flags.help) return { kind: 'help', text: helpText() };
    if (flags.version) return { kind: 'version' };
    const values: Record<string, unknown> = {};
    for (const name of settingNames) values[name] = valueOf(name, flags.values, source.env);
    const password = source.env[passwordVariable] ?? '';
    const given = values as SettingValues;
    const config = joinValues(given, password, flags.values.has('autoCompactionRetention'));
    const warnings = [
      ...warningsOf(config),
      ...strayTls(given),
      ...strayPeerTls(given),
      ...unknownVariables(source.env),
    ];
    return { kind: 'config', config, warnings };
  } catch (error) {
    if (error instanceof ConfigError) return { kind: 'refused', message: error.message };
    throw error;
  }
}

/** A password is not a flag, since every user of the machine can see the flags of a process. */
const passwordVariable = 'TENURE_ENGINE_PASSWORD';

const settingNames = Object.keys(settings) as SettingName[];

function valueOf(name: SettingName, flags: ReadonlyMap<SettingName, string>, env: ConfigSource['env']): unknown {
  const setting: Setting<unknown> = settings[name];
  const flag = flags.get(name);
  if (flag !== undefined) return parseNamed(flagOf(name), flag, setting.parse);
  const variable = env[variableOf(name)];
  // An empty variable counts as unset, as with etcd: scripts unset one that way.
  if (variable !== undefined && variable !== '') return parseNamed(variableOf(name), variable, setting.parse);
  return setting.parse(setting.fallback);
}

function parseNamed<T>(name: string, text: string, parse: (text: string) => T): T {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof ConfigError) throw new ConfigError(`${name} ${JSON.stringify(text)} ${error.message}`);
    throw error;
  }
}

/**
 * The state's estimated size at which writes stop: well below the size at which V8 would abort, and never above etcd's
 * own default.
 */
const defaultQuotaBytes = Math.min(2 * 1024 ** 3, Math.floor(getHeapStatistics().heap_size_limit / 2));

function joinValues(values: SettingValues, password: string, retentionFromFlag: boolean): ServerConfig {
  const { clientTls, others: notClients } = joinClientTls(values);
  const { peerTls, others } = joinPeerTls(values, notClients);
  const { autoCompactionMode, autoCompactionRetention, quotaBackendBytes, ...rest } = others;
  const { minLeaseTtl, heartbeatInterval, electionTimeout, watchProgressNotifyInterval, ...timed } = rest;
  const { authTokenTtl, ...plain } = timed;
  const retentionName = retentionFromFlag ? flagOf('autoCompactionRetention') : variableOf('autoCompactionRetention');
  const config: ServerConfig = {
    ...plain,
    listenClientUrls: Object.freeze(values.listenClientUrls.map((url) => Object.freeze(url))),
    advertiseClientUrls: Object.freeze(values.advertiseClientUrls),
    listenPeerUrls: Object.freeze(values.listenPeerUrls.map((url) => Object.freeze(url))),
    initialAdvertisePeerUrls: Object.freeze(values.initialAdvertisePeerUrls),
    clientTls,
    peerTls,
    quotaBackendBytes: quotaBackendBytes === 0 ? defaultQuotaBytes : quotaBackendBytes,
    autoCompaction: Object.freeze(
      parseNamed(retentionName, autoCompactionRetention, (text) => parseAutoCompaction(autoCompactionMode, text)),
    ),
    authTokenTtlMs: authTokenTtl * 1000,
    minLeaseTtlMs: minLeaseTtl,
    heartbeatIntervalMs: heartbeatInterval,
    electionTimeoutMs: electionTimeout,
    watchProgressNotifyIntervalMs: watchProgressNotifyInterval,
    enginePassword: password,
  };
  if (config.engine.includes('://') && heartbeatInterval > sharedHeartbeatMaxMs) {
    throw new ConfigError(
      `--heartbeat-interval must be at most ${sharedHeartbeatMaxMs}ms on a log that several servers share: ` +
        'with a longer one the leader lease ends in between',
    );
  }
  const { advertiseClientUrls, listenClientUrls } = config;
  const [flag, urls] =
    advertiseClientUrls.length > 0
      ? [flagOf('advertiseClientUrls'), advertiseClientUrls]
      : [flagOf('listenClientUrls'), listenClientUrls.map(formatUrl)];
  const isForTls = values.listenPeerUrls.length === 0 && urls.every((url) => url.startsWith('https:'));
  if (config.engine.includes('://') && isForTls && clientTls?.options.maxVersion === 'TLSv1.2') {
    throw new ConfigError(
      `--tls-max-version must be TLS1.3 with ${flag} ${urls.join()} on a log that several servers share: ` +
        'there they reach each other',
    );
  }
  return Object.freeze(config);
}

/** Half of the leader lease, so that one heartbeat may be late. */
const sharedHeartbeatMaxMs = 400;

/** With another engine these flags have no effect, which the operator may not expect. */
function strayLogin({ engine, engineUser, enginePassword, enginePasswordFile }: ServerConfig): string[] {
  if (engine.startsWith('etcd://')) return [];
  const given: readonly (readonly [name: string, value: string])[] = [
    [flagOf('engineUser'), engineUser],
    [flagOf('enginePasswordFile'), enginePasswordFile],
    [passwordVariable, enginePassword],
  ];
  return given
    .filter(([, value]) => value !== '')
    .map(([name]) => `${name} is read by the etcd engine alone (--engine etcd://...): here it does nothing`);
}

function warningsOf(config: ServerConfig): string[] {
  const warnings = strayLogin(config);
  const open = config.listenClientUrls.filter((url) => !isLoopback(url.host));
  const plain = open.filter(({ scheme }) => scheme === 'http');
  if (plain.length > 0) {
    warnings.push(
      `${listOf(plain)} is open to other machines without TLS: ` +
        'a machine between a client and this server can read and change what passes',
    );
  }
  if (config.advertiseClientUrls.length === 0 && open.some((url) => url.host === '0.0.0.0' || url.host === '::')) {
    warnings.push('clients cannot dial a wildcard address: give --advertise-client-urls the address that they use');
  }
  const heapBytes = getHeapStatistics().heap_size_limit;
  if (config.quotaBackendBytes > heapBytes * 0.75) {
    const mebibytes = Math.ceil((config.quotaBackendBytes * 2) / 1024 ** 2);
    warnings.push(
      `--quota-backend-bytes ${config.quotaBackendBytes} is more than the heap can hold: ` +
        `start with NODE_OPTIONS=--max-old-space-size=${mebibytes}`,
    );
  }
  if (config.maxRequestBytes > 10 * 1024 ** 2) {
    warnings.push(
      `--max-request-bytes ${config.maxRequestBytes} is large: each request of that size holds up all others`,
    );
  }
  return warnings;
}

const knownVariables = new Set([
  ...settingNames.map(variableOf),
  passwordVariable,
  // Variables of the other commands, and those that `tenure lock` sets for its command.
  'TENURE_ENDPOINTS',
  'TENURE_COMMAND_TIMEOUT',
  'TENURE_CACERT',
  'TENURE_CERT',
  'TENURE_KEY',
  'TENURE_USER',
  'TENURE_PASSWORD',
  'TENURE_LEASE_NAME',
  'TENURE_FENCING_TOKEN',
]);
// Kubernetes sets TENURE_SERVICE_HOST, TENURE_PORT and others in every pod when a service is called `tenure`.
const madeByKubernetes = /^TENURE_(?:\w+_)?(?:SERVICE|PORT)(?:_|$)/;

function unknownVariables(env: ConfigSource['env']): string[] {
  return Object.keys(env)
    .filter((name) => name.startsWith('TENURE_') && !knownVariables.has(name) && !madeByKubernetes.test(name))
    .map((name) => `the environment variable ${name} is not one of ours: see tenure serve --help`);
}
