import { parseCipherSuites } from '../tls/cipher-suites.ts';
import type { TlsVersion } from '../tls/tls-options.ts';
import { ConfigError } from './config-error.ts';
import { parseNames } from './parse-names.ts';
import { oneOf, setting, trueOrFalse, wholeNumber } from './setting.ts';

const asGiven = (text: string): string => text;

/** The settings of TLS between clients and the server. */
export const tlsSettings = {
  certFile: setting({
    group: 'TLS',
    value: 'FILE',
    fallback: '',
    fallbackShown: 'none',
    help:
      "PEM file with the server's certificate and those between it and its authority, for https:// addresses. All " +
      'files of TLS are read again when they change.',
    parse: asGiven,
  }),
  keyFile: setting({
    group: 'TLS',
    value: 'FILE',
    fallback: '',
    fallbackShown: 'none',
    help: 'PEM file with the key of --cert-file.',
    parse: asGiven,
  }),
  clientCertAuth: setting({
    group: 'TLS',
    value: 'true|false',
    fallback: 'false',
    isSwitch: true,
    help: 'Take only clients with a certificate that --trusted-ca-file has signed; its common name names the client.',
    parse: trueOrFalse,
  }),
  trustedCaFile: setting({
    group: 'TLS',
    value: 'FILE',
    fallback: '',
    fallbackShown: 'none, and clients need no certificate',
    help: 'PEM file with the authorities that sign the certificates of clients; every client must have one then.',
    parse: asGiven,
  }),
  clientCrlFile: setting({
    group: 'TLS',
    value: 'FILE',
    fallback: '',
    fallbackShown: 'none',
    help: 'PEM or DER file with what those authorities have revoked; in PEM, a list for each of them.',
    parse: asGiven,
  }),
  clientCertAllowedHostname: setting({
    group: 'TLS',
    value: 'NAME,...',
    fallback: '',
    fallbackShown: 'any',
    help: 'Take only clients whose certificate has one of these DNS names or IP addresses as an alternative name.',
    parse: parseNames,
  }),
  autoTls: setting({
    group: 'TLS',
    value: 'true|false',
    fallback: 'false',
    isSwitch: true,
    help:
      'Without --cert-file: make a self-signed certificate in DATA-DIR/fixtures/client. It hides what passes on the ' +
      'network; a client that does not know the certificate cannot tell who answers.',
    parse: trueOrFalse,
  }),
  selfSignedCertValidity: setting({
    group: 'TLS',
    value: 'YEARS',
    fallback: '1',
    help: 'Validity of that certificate.',
    parse: wholeNumber({ min: 1, max: 100 }),
  }),
  tlsMinVersion: setting({
    group: 'TLS',
    value: 'TLS1.2|TLS1.3',
    fallback: 'TLS1.2',
    help: 'Lowest version of TLS.',
    parse: parseVersion,
  }),
  tlsMaxVersion: setting({
    group: 'TLS',
    value: 'TLS1.2|TLS1.3',
    fallback: 'TLS1.3',
    help: 'Highest version of TLS.',
    parse: parseVersion,
  }),
  cipherSuites: setting({
    group: 'TLS',
    value: 'NAME,...',
    fallback: '',
    fallbackShown: 'those that HTTP/2 allows',
    help: "Cipher suites of TLS 1.2, in this order, by Go's names: TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256.",
    parse: parseCiphers,
  }),
} as const;

function parseVersion(text: string): TlsVersion {
  // Go's empty value: the highest that there is.
  const version = text === '' ? 'TLS1.3' : oneOf('TLS1.2', 'TLS1.3')(text);
  return version === 'TLS1.2' ? 'TLSv1.2' : 'TLSv1.3';
}

/** The list in OpenSSL's form, and whether it was chosen. */
function parseCiphers(text: string): { readonly ciphers: string; readonly isChosen: boolean } {
  const parsed = parseCipherSuites(text);
  if ('fault' in parsed) throw new ConfigError(`cannot be used: ${parsed.fault}`);
  return { ciphers: parsed.ciphers, isChosen: text !== '' };
}
