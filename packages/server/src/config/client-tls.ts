import { ConfigError } from './config-error.ts';
import { flagOf } from './flags.ts';
import { formatUrl, type ListenUrl } from './listen-url.ts';
import type { ClientTlsConfig } from './server-config.ts';
import type { SettingValues } from './settings.ts';

/**
 * Joins the settings of TLS, and returns the others beside them. Undefined without an https:// address. Throws
 * ConfigError.
 */
export function joinClientTls(values: SettingValues) {
  const { certFile, keyFile, autoTls, selfSignedCertValidity: validityYears, ...notOwn } = values;
  const { clientCertAuth, trustedCaFile, clientCrlFile, clientCertAllowedHostname, ...notClients } = notOwn;
  const { tlsMinVersion: minVersion, tlsMaxVersion: maxVersion, cipherSuites, ...others } = notClients;
  checkTls(values);
  const secure = values.listenClientUrls.find(({ scheme }) => scheme === 'https');
  if (secure === undefined) return { clientTls: undefined, others };
  if (certFile === '' && !autoTls) {
    throw new ConfigError(
      `--listen-client-urls ${formatUrl(secure)} uses TLS: give --cert-file and --key-file, or --auto-tls`,
    );
  }
  const files = Object.freeze({ certFile, keyFile, trustedCaFile, crlFile: clientCrlFile });
  const { ciphers } = cipherSuites;
  const clientTls: ClientTlsConfig = Object.freeze({
    options: Object.freeze({
      files,
      allowedHostnames: clientCertAllowedHostname,
      allowedCommonNames: [],
      minVersion,
      maxVersion,
      ciphers,
    }),
    selfSigned: certFile === '' ? { validityYears } : undefined,
    namesCaller: clientCertAuth,
  });
  return { clientTls, others };
}

function checkTls(values: SettingValues): void {
  const { certFile, keyFile, trustedCaFile, tlsMinVersion, tlsMaxVersion, cipherSuites } = values;
  if ((certFile === '') !== (keyFile === '')) throw new ConfigError('--cert-file and --key-file go together');
  if (tlsMinVersion > tlsMaxVersion) throw new ConfigError('--tls-min-version must not be above --tls-max-version');
  if (cipherSuites.isChosen && tlsMinVersion === 'TLSv1.3') {
    throw new ConfigError('--cipher-suites are of TLS 1.2, which --tls-min-version excludes');
  }
  if (trustedCaFile !== '') return;
  const needing = (['clientCertAuth', 'clientCrlFile', 'clientCertAllowedHostname'] as const).find((name) =>
    typeof values[name] === 'boolean' ? values[name] : values[name].length > 0,
  );
  if (needing === undefined) return;
  throw new ConfigError(`${flagOf(needing)} needs --trusted-ca-file: the authorities that sign for clients`);
}

/** Settings of TLS that have no effect, which the operator may not expect. */
export function strayTls(values: SettingValues): string[] {
  const { certFile, autoTls, trustedCaFile, listenClientUrls } = values;
  const warnings: string[] = [];
  if (autoTls && certFile !== '') warnings.push('--auto-tls does nothing: --cert-file gives a certificate');
  const plain = listenClientUrls.filter(({ scheme }) => scheme === 'http');
  if (plain.length > 0 && (certFile !== '' || autoTls || trustedCaFile !== '')) {
    warnings.push(`${listOf(plain)} uses http: clients have neither TLS nor need a certificate there`);
  }
  return warnings;
}

export function listOf(urls: readonly ListenUrl[]): string {
  return urls.map(formatUrl).join(', ');
}
