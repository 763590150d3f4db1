// Reason for length: a table with one row per setting, and one per refusal.
import { defaultCiphers } from '../tls/cipher-suites.ts';
import { resolve } from 'node:path';
import { getHeapStatistics } from 'node:v8';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { flagOf, variableOf } from './flags.ts';
import { parseServerConfig } from './parse-server-config.ts';
import type { ServerConfig } from './server-config.ts';
import { unguardedUrls } from './unguarded-urls.ts';
import { type SettingName, settings } from './settings.ts';

const outcome = (argv: string[], env: Record<string, string> = {}) => parseServerConfig({ argv, env });

function config(argv: string[], env: Record<string, string> = {}): ServerConfig {
  const found = outcome(argv, env);
  if (found.kind !== 'config') throw new Error(JSON.stringify(found));
  return found.config;
}

function refusal(argv: string[], env: Record<string, string> = {}): string {
  const found = outcome(argv, env);
  return found.kind === 'refused' ? found.message : `not refused: ${found.kind}`;
}

function warnings(argv: string[], env: Record<string, string> = {}): readonly string[] {
  const found = outcome(argv, env);
  return found.kind === 'config' ? found.warnings : [`no config: ${found.kind}`];
}

describe('without flags', () => {
  test('the defaults are those of etcd, for flags that etcd has', () => {
    expect(config([])).toEqual({
      name: 'default',
      engine: 'file',
      dataDir: resolve('tenure-data'),
      listenClientUrls: [{ scheme: 'http', host: '127.0.0.1', port: 2379 }],
      clientTls: undefined,
      advertiseClientUrls: [],
      listenPeerUrls: [],
      initialAdvertisePeerUrls: [],
      cors: [],
      hostWhitelist: ['*'],
      quotaBackendBytes: Math.min(2 * 1024 ** 3, Math.floor(getHeapStatistics().heap_size_limit / 2)),
      maxRequestBytes: 1_572_864,
      maxTxnOps: 128,
      autoCompaction: { mode: 'bounded', retentionMs: 3_600_000 },
      authToken: { kind: 'simple' },
      authTokenTtlMs: 300_000,
      minLeaseTtlMs: 100,
      heartbeatIntervalMs: 200,
      electionTimeoutMs: 1000,
      engineSchema: 'tenure',
      engineDedicated: false,
      engineUser: '',
      enginePassword: '',
      enginePasswordFile: '',
      reads: 'log',
      engineCacert: '',
      engineCert: '',
      engineKey: '',
      clusterId: undefined,
      watchProgressNotifyIntervalMs: 600_000,
      snapshotCount: 100_000,
      snapshotLogBytes: 64 * 1024 * 1024,
      logLevel: 'warn',
      auditLog: '',
      bcryptCost: 10,
      peerTls: {
        options: {
          files: { certFile: '', keyFile: '', trustedCaFile: '', crlFile: '' },
          allowedHostnames: [],
          allowedCommonNames: [],
          minVersion: 'TLSv1.3',
          maxVersion: 'TLSv1.3',
          ciphers: defaultCiphers,
        },
        selfSigned: undefined,
        isUnverified: false,
      },
    });
    expect(warnings([])).toEqual([]);
  });

  test('the configuration is frozen', () => {
    const made = config(['--auto-compaction-retention', '1']);
    const parts = [
      made,
      made.listenClientUrls,
      made.listenClientUrls[0],
      made.advertiseClientUrls,
      made.listenPeerUrls,
      made.initialAdvertisePeerUrls,
      made.cors,
      made.hostWhitelist,
      made.autoCompaction,
      made.authToken,
    ];
    expect(parts.every((part) => Object.isFrozen(part))).toBe(true);
  });
});

interface Sample {
  readonly text: string;
  readonly other: string;
  /** Variables without which the setting has no effect. */
  readonly given?: Record<string, string>;
  readonly read: (config: ServerConfig) => unknown;
  readonly value: unknown;
}

const withTls = {
  TENURE_LISTEN_CLIENT_URLS: 'https://127.0.0.1:1',
  TENURE_CERT_FILE: 'c',
  TENURE_KEY_FILE: 'k',
  TENURE_TRUSTED_CA_FILE: 'a',
};
const tlsFile = { text: 'file.pem', other: 'other.pem', given: withTls, value: 'file.pem' };

const withPeerTls = { TENURE_PEER_CERT_FILE: 'c', TENURE_PEER_KEY_FILE: 'k', TENURE_PEER_TRUSTED_CA_FILE: 'a' };
const peerFile = { text: 'file.pem', other: 'other.pem', given: withPeerTls, value: 'file.pem' };

const samples: Record<SettingName, Sample> = {
  name: { text: 'infra1', other: 'infra2', read: (made) => made.name, value: 'infra1' },
  engine: { text: 'memory', other: 'file', read: (made) => made.engine, value: 'memory' },
  dataDir: { text: '/var/lib/x', other: '/y', read: (made) => made.dataDir, value: '/var/lib/x' },
  listenClientUrls: {
    text: 'http://[::1]:0,https://localhost:12',
    given: { TENURE_AUTO_TLS: 'true' },
    other: 'http://127.0.0.1:1',
    read: (made) => made.listenClientUrls,
    value: [
      { scheme: 'http', host: '::1', port: 0 },
      { scheme: 'https', host: 'localhost', port: 12 },
    ],
  },
  advertiseClientUrls: {
    text: 'http://tenure.example:2379/,https://[::1]:443',
    other: 'http://a:1',
    read: (made) => made.advertiseClientUrls,
    value: ['http://tenure.example:2379', 'https://[::1]:443'],
  },
  quotaBackendBytes: { text: '1048576', other: '7', read: (made) => made.quotaBackendBytes, value: 1_048_576 },
  maxRequestBytes: { text: '1', other: '4096', read: (made) => made.maxRequestBytes, value: 1 },
  maxTxnOps: { text: '7', other: '8', read: (made) => made.maxTxnOps, value: 7 },
  autoCompactionMode: {
    text: 'revision',
    other: 'periodic',
    read: (made) => made.autoCompaction?.mode,
    value: undefined,
  },
  autoCompactionRetention: {
    text: '30m',
    other: '1',
    read: (made) => made.autoCompaction,
    value: { mode: 'periodic', retentionMs: 1_800_000 },
  },
  authToken: {
    text: 'jwt,pub-key=/a=b.pem,priv-key=c.pem,sign-method=ES256,ttl=1h30m',
    other: 'simple',
    read: (made) => made.authToken,
    value: {
      kind: 'jwt',
      publicKeyFile: '/a=b.pem',
      privateKeyFile: 'c.pem',
      signMethod: 'ES256',
      ttlMs: 5_400_000,
    },
  },
  authTokenTtl: { text: '60', other: '61', read: (made) => made.authTokenTtlMs, value: 60_000 },
  minLeaseTtl: { text: '2s', other: '1s', read: (made) => made.minLeaseTtlMs, value: 2000 },
  heartbeatInterval: { text: '100', other: '1s', read: (made) => made.heartbeatIntervalMs, value: 100 },
  electionTimeout: { text: '2000', other: '3s', read: (made) => made.electionTimeoutMs, value: 2000 },
  engineDedicated: { text: 'true', other: 'false', read: (made) => made.engineDedicated, value: true },
  engineCacert: { text: '/ca.pem', other: 'b', read: (made) => made.engineCacert, value: '/ca.pem' },
  engineCert: { text: '/c.pem', other: 'b', read: (made) => made.engineCert, value: '/c.pem' },
  engineKey: { text: '/k.pem', other: 'b', read: (made) => made.engineKey, value: '/k.pem' },
  clusterId: { text: 'aB1', other: '2', read: (made) => made.clusterId, value: 0xab1n },
  engineUser: { text: 'ada', other: 'bob', read: (made) => made.engineUser, value: 'ada' },
  enginePasswordFile: { text: 'word', other: 'b', read: (made) => made.enginePasswordFile, value: 'word' },
  reads: { text: 'lease', other: 'log', read: (made) => made.reads, value: 'lease' },
  engineSchema: { text: 'other', other: 'more', read: (made) => made.engineSchema, value: 'other' },
  watchProgressNotifyInterval: {
    text: '1m',
    other: '2m',
    read: (made) => made.watchProgressNotifyIntervalMs,
    value: 60_000,
  },
  snapshotCount: { text: '10', other: '11', read: (made) => made.snapshotCount, value: 10 },
  snapshotLogBytes: { text: '8192', other: '9000', read: (made) => made.snapshotLogBytes, value: 8192 },
  bcryptCost: { text: '4', other: '11', read: (made) => made.bcryptCost, value: 4 },
  auditLog: { text: '/var/log/audit', other: 'b', read: (made) => made.auditLog, value: '/var/log/audit' },
  certFile: { ...tlsFile, read: ({ clientTls }) => clientTls?.options.files.certFile ?? '' },
  keyFile: { ...tlsFile, read: ({ clientTls }) => clientTls?.options.files.keyFile ?? '' },
  trustedCaFile: { ...tlsFile, read: ({ clientTls }) => clientTls?.options.files.trustedCaFile ?? '' },
  clientCrlFile: { ...tlsFile, read: ({ clientTls }) => clientTls?.options.files.crlFile ?? '' },
  clientCertAllowedHostname: {
    text: 'a.example.com, 10.0.0.1',
    other: 'b',
    given: withTls,
    read: ({ clientTls }) => clientTls?.options.allowedHostnames,
    value: ['a.example.com', '10.0.0.1'],
  },
  clientCertAuth: {
    text: 'true',
    other: 'false',
    given: withTls,
    read: ({ clientTls }) => clientTls?.namesCaller,
    value: true,
  },
  autoTls: {
    text: 'true',
    other: 'false',
    given: { TENURE_LISTEN_CLIENT_URLS: 'https://127.0.0.1:1', TENURE_SELF_SIGNED_CERT_VALIDITY: '3' },
    read: ({ clientTls }) => clientTls?.selfSigned,
    value: { validityYears: 3 },
  },
  selfSignedCertValidity: {
    text: '10',
    other: '2',
    given: { TENURE_LISTEN_CLIENT_URLS: 'https://127.0.0.1:1', TENURE_AUTO_TLS: 'true' },
    read: ({ clientTls }) => clientTls?.selfSigned,
    value: { validityYears: 10 },
  },
  tlsMinVersion: {
    text: 'TLS1.3',
    other: 'TLS1.2',
    given: withTls,
    read: ({ clientTls }) => clientTls?.options.minVersion,
    value: 'TLSv1.3',
  },
  tlsMaxVersion: {
    text: 'TLS1.2',
    other: 'TLS1.3',
    given: withTls,
    read: ({ clientTls }) => clientTls?.options.maxVersion,
    value: 'TLSv1.2',
  },
  cipherSuites: {
    text: 'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384',
    other: '',
    given: withTls,
    read: ({ clientTls }) => clientTls?.options.ciphers.split(':').slice(3),
    value: ['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-AES256-GCM-SHA384'],
  },
  peerCertFile: { ...peerFile, read: ({ peerTls }) => peerTls.options.files.certFile },
  peerKeyFile: { ...peerFile, read: ({ peerTls }) => peerTls.options.files.keyFile },
  peerTrustedCaFile: { ...peerFile, read: ({ peerTls }) => peerTls.options.files.trustedCaFile },
  peerCrlFile: { ...peerFile, read: ({ peerTls }) => peerTls.options.files.crlFile },
  listenPeerUrls: {
    text: 'http://[::1]:0,https://localhost:12',
    given: { TENURE_PEER_AUTO_TLS: 'true' },
    other: 'http://127.0.0.1:1',
    read: (made) => made.listenPeerUrls,
    value: [
      { scheme: 'http', host: '::1', port: 0 },
      { scheme: 'https', host: 'localhost', port: 12 },
    ],
  },
  initialAdvertisePeerUrls: {
    text: 'http://tenure.example:2380/,https://[::1]:443',
    other: 'http://a:1',
    given: { TENURE_LISTEN_PEER_URLS: 'http://127.0.0.1:1' },
    read: (made) => made.initialAdvertisePeerUrls,
    value: ['http://tenure.example:2380', 'https://[::1]:443'],
  },
  cors: { text: 'http://b:8080, *', other: '*', read: (made) => made.cors, value: ['http://b:8080', '*'] },
  hostWhitelist: { text: 'a,::1', other: '*', read: (made) => made.hostWhitelist, value: ['a', '::1'] },
  peerClientCertAuth: {
    text: 'true',
    other: 'false',
    given: withPeerTls,
    // The authorities alone already mean that.
    read: ({ peerTls }) => peerTls.options.files.trustedCaFile,
    value: 'a',
  },
  peerCertAllowedCn: {
    text: 's1, s2',
    other: 's3',
    given: withPeerTls,
    read: ({ peerTls }) => peerTls.options.allowedCommonNames,
    value: ['s1', 's2'],
  },
  peerCertAllowedHostname: {
    text: 'a.example, 10.0.0.7',
    other: 'b.example',
    given: withPeerTls,
    read: ({ peerTls }) => peerTls.options.allowedHostnames,
    value: ['a.example', '10.0.0.7'],
  },
  peerAutoTls: {
    text: 'true',
    other: 'false',
    read: ({ peerTls: { selfSigned, isUnverified } }) => ({ selfSigned, isUnverified }),
    value: { selfSigned: { validityYears: 1 }, isUnverified: true },
  },
  logLevel: { text: 'debug', other: 'info', read: (made) => made.logLevel, value: 'debug' },
};

describe.each(Object.entries(samples))('%s', (key, sample) => {
  const name = key as SettingName;
  const { given = {}, text, other } = sample;
  const read = (argv: string[], env: Record<string, string> = {}) => sample.read(config(argv, { ...given, ...env }));

  test('can be given as flag, as --flag=value, with one dash, and as variable', () => {
    expect(read([flagOf(name), text])).toEqual(sample.value);
    expect(read([`${flagOf(name)}=${text}`])).toEqual(sample.value);
    expect(read([flagOf(name).slice(1), text])).toEqual(sample.value);
    expect(read([], { [variableOf(name)]: text })).toEqual(sample.value);
  });

  test('the flag wins over the variable, and the last flag over the first', () => {
    expect(read([flagOf(name), text], { [variableOf(name)]: other })).toEqual(sample.value);
    expect(read([flagOf(name), other, flagOf(name), text])).toEqual(sample.value);
  });

  test('an empty variable counts as none', () => {
    expect(config([], { [variableOf(name)]: '' })).toEqual(config([]));
  });

  test('is in the help, with its default and its variable', () => {
    const found = outcome(['--help']);
    const help = found.kind === 'help' ? found.text.replaceAll(/\s+/g, ' ') : '';
    const setting = settings[name];
    const shown = 'fallbackShown' in setting ? setting.fallbackShown : setting.fallback;
    expect(help).toContain(`${flagOf(name)} ${setting.value}`);
    expect(help).toContain(`Default: ${shown}. [${variableOf(name)}]`);
  });
});

describe('refusals are one line that names the flag or variable and its value', () => {
  test.each([
    [['--listen-client-urls', 'https://127.0.0.1:1'], /^--listen-client-urls https:.*:1 uses TLS: give --cert-file/],
    [['--cert-file', 'x'], /--cert-file and --key-file go together/],
    [['--client-cert-auth'], /--client-cert-auth needs --trusted-ca-file/],
    [['--client-crl-file', 'x'], /--client-crl-file needs --trusted-ca-file/],
    [['--client-cert-allowed-hostname', 'a'], /--client-cert-allowed-hostname needs --trusted-ca-file/],
    [['--client-cert-allowed-hostname', 'a,,b'], /must not have an empty name/],
    [['--client-cert-auth=yes'], /one of true, false/],
    [['--tls-min-version', 'TLS1.1'], /one of TLS1.2, TLS1.3/],
    [['--tls-min-version', 'TLS1.3', '--tls-max-version', 'TLS1.2'], /must not be above/],
    [['--cipher-suites', 'TLS_NONE'], /"TLS_NONE" is no cipher suite/],
    [['--cipher-suites', 'TLS_AES_128_GCM_SHA256'], /is of TLS 1.3, whose suites cannot be chosen/],
    [['--cipher-suites', 'TLS_RSA_WITH_AES_128_CBC_SHA'], /is not for HTTP\/2/],
    [
      ['--cipher-suites', 'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256', '--tls-min-version', 'TLS1.3'],
      /are of TLS 1.2, which --tls-min-version excludes/,
    ],
    [['--self-signed-cert-validity', '0'], /from 1 to 100/],
    [
      [
        ...['--engine', 'postgres://a@b/c', '--listen-client-urls', 'https://127.0.0.1:1', '--auto-tls'],
        ...['--tls-max-version', 'TLS1.2'],
      ],
      /--tls-max-version must be TLS1.3 with --listen-client-urls https:.*:1 on a log/,
    ],
    [['--client-cert-file', 'x'], /no client of its own/],
    [['--listen-client-urls', 'unix://sock'], /unix socket, which is not supported/],
    [['--listen-client-urls', 'http://example.com:1'], /must name an IP address or localhost.*"example.com"/],
    [['--listen-client-urls', 'http://127.0.0.1'], /must look like http:\/\/IP:PORT/],
    [['--listen-client-urls', 'http://127.0.0.1:65536'], /at most 65535/],
    [['--listen-client-urls', 'http://[1.2.3.4]:1'], /IPv6/],
    [['--listen-client-urls', 'http://127.0.0.1:1/path'], /must look like/],
    [['--listen-client-urls', 'http://u:p@127.0.0.1:1'], /must look like/],
    [['--listen-client-urls', ''], /must look like/],
    [['--listen-client-urls', Array(17).fill('http://127.0.0.1:0').join()], /at most 16/],
    [['--advertise-client-urls', 'http://a:0'], /port that clients use/],
    [['--engine', 'postgres'], /--engine "postgres" must be an address/],
    [['--engine', 'raft'], /must be file, memory, postgres/],
    [['--quota-backend-bytes', '-1'], /whole number from 0/],
    [['--quota-backend-bytes', '2GB'], /whole number/],
    [['--max-request-bytes', '0'], /from 1/],
    [['--advertise-client-urls', 'https://a'], /must look like/],
    [['--max-txn-ops', '1.5'], /whole number/],
    [['--auto-compaction-mode', 'hourly'], /one of periodic, revision/],
    [['--auto-compaction-retention', '-1'], /"-1" must not be negative/],
    [['--auto-compaction-retention', '-30m'], /must not be negative/],
    [['--auto-compaction-retention', 'soon'], /hours, such as 1/],
    [['--auto-compaction-retention', '10ms'], /at least 1s/],
    [['--auto-compaction-mode', 'revision', '--auto-compaction-retention', '5m'], /count of revisions/],
    [['--min-lease-ttl', '0'], /from 1ms/],
    [['--min-lease-ttl', '1.5ms'], /whole number of milliseconds/],
    [['--min-lease-ttl', '5'], /must be a duration/],
    [['--heartbeat-interval', '1h'], /from 10ms to 10s/],
    [['--heartbeat-interval', '401ms', '--engine', 'postgres://a@b/c'], /at most 400ms on a log that several/],
    [['--heartbeat-interval', '401ms', '--engine', 'etcd://a:1/b'], /at most 400ms on a log that several/],
    [['--log-level', 'trace'], /one of debug, info, warn, error/],
    [['--name', ''], /must not be empty/],
    [['--auth-token-ttl', '0'], /whole number from 1/],
    [['--auth-token-ttl', '5m'], /whole number from 1/],
    [['--bcrypt-cost', '3'], /whole number from 4/],
    [['--initial-cluster', 'x'], /servers join by starting/],
    [['--no-such-flag'], /unknown flag --no-such-flag/],
    [['--name'], /--name needs a value/],
    [['extra'], /unexpected argument "extra"/],
  ])('%j', (argv, message) => {
    expect(refusal(argv)).toMatch(message);
    expect(refusal(argv)).not.toContain('\n');
  });

  test('a variable is named as one', () => {
    expect(refusal([], { TENURE_MAX_TXN_OPS: 'many' })).toMatch(/^TENURE_MAX_TXN_OPS "many" must be a whole number/);
  });

  test('no argument of any kind makes it throw', () => {
    const word = fc.oneof(
      fc.string(),
      fc.constantFrom(...Object.keys(settings).map((name) => flagOf(name as SettingName))),
    );
    fc.assert(fc.property(fc.array(word, { maxLength: 6 }), (argv) => typeof outcome(argv).kind === 'string'));
  });
});

describe('automatic compaction', () => {
  test.each([
    ['periodic', '1', { mode: 'periodic', retentionMs: 3_600_000 }],
    ['periodic', '1h30m', { mode: 'periodic', retentionMs: 5_400_000 }],
    ['revision', '1000', { mode: 'revision', retention: 1000 }],
    ['periodic', '0', undefined],
    ['revision', '0', undefined],
    ['periodic', '0s', undefined],
    ['periodic', '', { mode: 'bounded', retentionMs: 3_600_000 }],
    ['revision', '', undefined],
  ])('%s %s', (mode, retention, expected) => {
    const made = config(['--auto-compaction-mode', mode, '--auto-compaction-retention', retention]);
    expect(made.autoCompaction).toEqual(expected);
  });
});

test('a switch alone means true, before another flag and at the end', () => {
  const argv = ['--listen-client-urls', 'https://127.0.0.1:1', '--auto-tls', '--trusted-ca-file', 'a'];
  expect(config([...argv, '--client-cert-auth']).clientTls).toMatchObject({ namesCaller: true });
  expect(config([...argv, '--client-cert-auth', 'false']).clientTls).toMatchObject({ namesCaller: false });
});

describe('warnings', () => {
  test('an address that other machines reach', () => {
    expect(warnings(['--listen-client-urls', 'http://10.0.0.1:2379'])).toEqual([
      expect.stringContaining('http://10.0.0.1:2379 is open to other machines without TLS'),
    ]);
    const secure = ['--listen-client-urls', 'https://10.0.0.1:2379', '--cert-file', 'c', '--key-file', 'k'];
    expect(warnings(secure)).toEqual([]);
    expect(unguardedUrls(config(secure))).toEqual(['https://10.0.0.1:2379']);
    expect(unguardedUrls(config([...secure, '--trusted-ca-file', 'ca', '--client-cert-auth']))).toEqual([]);
    expect(unguardedUrls(config([]))).toEqual([]);
  });

  test('an address without TLS beside one with it, and a certificate beside --auto-tls', () => {
    const both = ['--listen-client-urls', 'https://127.0.0.1:1,http://127.0.0.1:2', '--auto-tls'];
    const plain = expect.stringContaining('http://127.0.0.1:2 uses http: clients have neither TLS');
    expect(warnings(both)).toEqual([plain]);
    const twice = expect.stringContaining('--auto-tls does nothing');
    expect(warnings([...both, '--cert-file', 'c', '--key-file', 'k'])).toEqual([twice, plain]);
  });

  test('a wildcard address that no client can dial, unless another is advertised', () => {
    expect(warnings(['--listen-client-urls', 'http://0.0.0.0:2379'])).toHaveLength(2);
    const advertised = ['--listen-client-urls', 'http://0.0.0.0:1', '--advertise-client-urls', 'http://10.0.0.1:1'];
    expect(warnings(advertised)).toHaveLength(1);
  });

  test('a user for an etcd, with another engine', () => {
    const user = ['--engine-password-file', 'word', '--engine-user', 'ada'];
    const env = { TENURE_ENGINE_PASSWORD: 'secret' };
    expect(warnings(user, env)).toEqual([
      expect.stringContaining('--engine-user is read by the etcd engine alone'),
      expect.stringContaining('--engine-password-file is'),
      expect.stringContaining('TENURE_ENGINE_PASSWORD is'),
    ]);
    expect(warnings(user, env).join()).not.toContain('secret');
    const etcd = ['--engine', 'etcd://10.0.0.1/x', ...user];
    expect(warnings(etcd, env)).toEqual([]);
    expect(config(etcd, env).enginePassword).toBe('secret');
  });

  test('every loopback address is quiet', () => {
    expect(warnings(['--listen-client-urls', 'http://127.9.9.9:1,http://[::1]:1,http://localhost:1'])).toEqual([]);
  });

  test('a quota beyond the heap names the option of Node that helps', () => {
    expect(warnings(['--quota-backend-bytes', String(getHeapStatistics().heap_size_limit)])).toEqual([
      expect.stringContaining('--max-old-space-size='),
    ]);
  });

  test('an unknown TENURE_ variable, except those that Kubernetes sets', () => {
    const env = { TENURE_DATADIR: 'x', TENURE_SERVICE_HOST: 'x', TENURE_PORT_2379_TCP: 'x', TENURE_ENDPOINTS: 'x' };
    expect(warnings([], env)).toEqual([expect.stringContaining('TENURE_DATADIR')]);
  });

  test('no variable of another command, nor of the lock that the server runs under', () => {
    const client = { TENURE_USER: 'x', TENURE_PASSWORD: 'x', TENURE_CACERT: 'x', TENURE_CERT: 'x', TENURE_KEY: 'x' };
    expect(warnings([], { ...client, TENURE_LEASE_NAME: 'x', TENURE_FENCING_TOKEN: '1' })).toEqual([]);
  });
});

test('--version', () => expect(outcome(['--version'])).toEqual({ kind: 'version' }));
