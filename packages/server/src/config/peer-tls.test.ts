import { describe, expect, test } from 'vitest';
import { parseServerConfig } from './parse-server-config.ts';
import type { ServerConfig } from './server-config.ts';

function config(argv: readonly string[]): ServerConfig {
  const outcome = parseServerConfig({ argv, env: {} });
  if (outcome.kind !== 'config') throw new Error(JSON.stringify(outcome));
  return outcome.config;
}

function refusal(argv: readonly string[]): string {
  const outcome = parseServerConfig({ argv, env: {} });
  return outcome.kind === 'refused' ? outcome.message : outcome.kind;
}

function warnings(argv: readonly string[]): readonly string[] {
  const outcome = parseServerConfig({ argv, env: {} });
  return outcome.kind === 'config' ? outcome.warnings : [outcome.kind];
}

describe('settings of connections between servers are refused in one line', () => {
  test.each([
    [['--peer-cert-file', 'x'], /--peer-cert-file and --peer-key-file go together/],
    [['--peer-client-cert-auth'], /--peer-client-cert-auth needs --peer-trusted-ca-file/],
    [['--peer-cert-allowed-cn', 'a'], /--peer-cert-allowed-cn needs --peer-trusted-ca-file/],
    [['--peer-cert-allowed-hostname', 'a'], /--peer-cert-allowed-hostname needs --peer-trusted-ca-file/],
    [['--peer-cert-allowed-cn', 'a,,b'], /must not have an empty name/],
    [['--peer-cert-allowed-cn', Array(65).fill('a').join()], /at most 64 names/],
    [
      ['--peer-trusted-ca-file', 'x', '--peer-cert-allowed-cn', 'a', '--peer-cert-allowed-hostname', 'b'],
      /exclude each other/,
    ],
    [['--listen-peer-urls', 'https://127.0.0.1:1'], /^--listen-peer-urls https:.*:1 uses TLS: give --peer-cert-file/],
    [
      ['--listen-peer-urls', 'https://127.0.0.1:1', '--peer-auto-tls', '--peer-trusted-ca-file', 'x'],
      /--peer-auto-tls makes a certificate that --peer-trusted-ca-file has not signed/,
    ],
    [['--listen-peer-urls', 'http://example.com:1'], /must name an IP address or localhost.*"example.com"/],
    [['--initial-advertise-peer-urls', 'http://a:1'], /needs --listen-peer-urls/],
    [['--advertise-peer-urls', 'http://a:1'], /servers join by starting/],
    [['--peer-crl-file', 'x'], /--peer-crl-file needs --peer-trusted-ca-file/],
  ])('%j', (argv, message) => {
    expect(refusal(argv)).toMatch(message);
    expect(refusal(argv)).not.toContain('\n');
  });
});

describe('warnings of a port for servers', () => {
  const shared = ['--engine', 'etcd://10.0.0.1/x'];
  const files = ['--peer-cert-file', 'c', '--peer-key-file', 'k', '--peer-trusted-ca-file', 'a'];
  const all = [
    ...files,
    ...['--listen-peer-urls', 'https://10.0.0.1:2380', '--initial-advertise-peer-urls', 'https://a:2380'],
    ...['--peer-client-cert-auth', '--peer-cert-allowed-cn', 's1'],
  ];

  test('it does nothing on an engine with one server, which is said once', () => {
    expect(warnings(all)).toEqual([
      'without effect: --listen-peer-urls, --initial-advertise-peer-urls, --peer-client-cert-auth, ' +
        '--peer-cert-allowed-cn. --engine file has one server alone',
    ]);
    expect(warnings([...shared, ...all])).toEqual([]);
  });

  test('an address without TLS, a wildcard address, and --peer-client-cert-auth without TLS', () => {
    const plain = ['--listen-peer-urls', 'http://0.0.0.0:2380', '--peer-client-cert-auth'];
    expect(warnings([...shared, ...files, ...plain])).toEqual([
      expect.stringContaining('http://0.0.0.0:2380 uses http: servers have neither TLS nor need a certificate'),
      expect.stringContaining('--peer-client-cert-auth does nothing without an https:// address'),
      expect.stringContaining('http://0.0.0.0:2380 is open to other machines without TLS'),
      expect.stringContaining('give --initial-advertise-peer-urls'),
    ]);
    expect(warnings([...shared, '--listen-peer-urls', 'http://127.0.0.1:2380'])).toEqual([]);
  });

  test('TLS 1.2 alone is enough for clients', () => {
    const old = ['--listen-client-urls', 'https://127.0.0.1:1', '--auto-tls', '--tls-max-version', 'TLS1.2'];
    expect(refusal([...shared, ...old])).toMatch(/must be TLS1.3/);
    expect(config([...shared, ...all, ...old]).clientTls?.options.maxVersion).toBe('TLSv1.2');
  });
});
