import { defaultCiphers } from '../tls/cipher-suites.ts';
import { ConfigError } from './config-error.ts';
import { listOf } from './client-tls.ts';
import { flagOf } from './flags.ts';
import type { PeerTlsConfig } from './server-config.ts';
import { formatUrl, isLoopback } from './listen-url.ts';
import type { SettingName, SettingValues } from './settings.ts';

type Own = Extract<SettingName, `peer${string}`>;

/** Joins the settings of TLS between servers, and returns the others beside them. Throws ConfigError. */
export function joinPeerTls<Rest extends Pick<SettingValues, Own>>(values: SettingValues, given: Rest) {
  const { peerCertFile: certFile, peerKeyFile: keyFile, peerTrustedCaFile: trustedCaFile, ...notFiles } = given;
  const { peerCrlFile: crlFile, peerAutoTls, peerClientCertAuth: _, ...notFlags } = notFiles;
  const { peerCertAllowedCn: allowedCommonNames, peerCertAllowedHostname: allowedHostnames, ...others } = notFlags;
  const { selfSignedCertValidity: validityYears } = values;
  checkPeerTls(values);
  const isSelfSigned = peerAutoTls && certFile === '';
  const peerTls: PeerTlsConfig = Object.freeze({
    options: Object.freeze({
      files: Object.freeze({ certFile, keyFile, trustedCaFile, crlFile }),
      allowedHostnames,
      allowedCommonNames,
      // A proof of the secret is for one connection, whose keys are its own only from here on.
      minVersion: 'TLSv1.3',
      maxVersion: 'TLSv1.3',
      ciphers: defaultCiphers,
    }),
    selfSigned: isSelfSigned ? { validityYears } : undefined,
    isUnverified: peerAutoTls && trustedCaFile === '',
  });
  return { peerTls, others };
}

function checkPeerTls(values: SettingValues): void {
  const { peerCertFile, peerKeyFile, peerTrustedCaFile, peerAutoTls, listenPeerUrls } = values;
  if ((peerCertFile === '') !== (peerKeyFile === '')) {
    throw new ConfigError('--peer-cert-file and --peer-key-file go together');
  }
  const needing = (['peerCrlFile', 'peerClientCertAuth', 'peerCertAllowedCn', 'peerCertAllowedHostname'] as const).find(
    (name) => isGiven(values[name]),
  );
  if (needing !== undefined && peerTrustedCaFile === '') {
    throw new ConfigError(`${flagOf(needing)} needs --peer-trusted-ca-file: the authorities of the servers`);
  }
  if (isGiven(values.peerCertAllowedCn) && isGiven(values.peerCertAllowedHostname)) {
    throw new ConfigError('--peer-cert-allowed-cn and --peer-cert-allowed-hostname exclude each other, as in etcd');
  }
  const secure = listenPeerUrls.find(({ scheme }) => scheme === 'https');
  if (secure !== undefined && peerCertFile === '' && !peerAutoTls) {
    throw new ConfigError(
      `--listen-peer-urls ${formatUrl(secure)} uses TLS: give --peer-cert-file and --peer-key-file, or --peer-auto-tls`,
    );
  }
  if (secure !== undefined && peerCertFile === '' && peerTrustedCaFile !== '') {
    throw new ConfigError(
      '--peer-auto-tls makes a certificate that --peer-trusted-ca-file has not signed, so servers with that file ' +
        `refuse ${formatUrl(secure)}: give --peer-cert-file and --peer-key-file, or leave one of the two out`,
    );
  }
  if (values.initialAdvertisePeerUrls.length > 0 && listenPeerUrls.length === 0) {
    throw new ConfigError('--initial-advertise-peer-urls needs --listen-peer-urls');
  }
}

function isGiven(value: string | boolean | readonly unknown[]): boolean {
  return typeof value === 'boolean' ? value : value.length > 0;
}

/** The settings of a port for servers. */
const portSettings = [
  'listenPeerUrls',
  'initialAdvertisePeerUrls',
  'peerClientCertAuth',
  'peerCertAllowedCn',
  'peerCertAllowedHostname',
] as const;

/** What the operator may not expect of the settings of connections between servers. */
export function strayPeerTls(values: SettingValues): string[] {
  const { engine, listenPeerUrls, initialAdvertisePeerUrls, peerAutoTls, peerCertFile, peerTrustedCaFile } = values;
  const warnings: string[] = [];
  if (peerAutoTls && peerCertFile !== '') {
    warnings.push('--peer-auto-tls makes no certificate: --peer-cert-file gives one');
  }
  if (!engine.includes('://')) {
    const unused = portSettings.filter((name) => isGiven(values[name])).map(flagOf);
    if (unused.length > 0)
      warnings.push(`without effect: ${unused.join(', ')}. --engine ${engine} has one server alone`);
    return warnings;
  }
  const plain = listenPeerUrls.filter(({ scheme }) => scheme === 'http');
  if (plain.length > 0 && isGiven(peerTrustedCaFile)) {
    warnings.push(`${listOf(plain)} uses http: servers have neither TLS nor need a certificate there`);
  }
  if (values.peerClientCertAuth && !listenPeerUrls.some(({ scheme }) => scheme === 'https')) {
    warnings.push('--peer-client-cert-auth does nothing without an https:// address in --listen-peer-urls');
  }
  const open = plain.filter(({ host }) => !isLoopback(host));
  if (open.length > 0) {
    warnings.push(
      `${listOf(open)} is open to other machines without TLS: ` +
        'a machine between two servers can read and change what passes',
    );
  }
  if (initialAdvertisePeerUrls.length === 0 && listenPeerUrls.some(({ host }) => host === '0.0.0.0' || host === '::')) {
    warnings.push(
      'servers cannot dial a wildcard address: give --initial-advertise-peer-urls the address that they use',
    );
  }
  return warnings;
}
