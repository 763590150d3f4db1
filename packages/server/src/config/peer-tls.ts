import { defaultCiphers } from '../tls/cipher-suites.ts';
import { ConfigError } from './config-error.ts';
import { flagOf } from './flags.ts';
import type { PeerTlsConfig } from './server-config.ts';
import type { SettingValues } from './settings.ts';

type Own = 'peerCertFile' | 'peerKeyFile' | 'peerTrustedCaFile' | 'peerCrlFile' | 'peerAutoTls';

/** Joins the settings of TLS between servers, and returns the others beside them. Throws ConfigError. */
export function joinPeerTls<Rest extends Pick<SettingValues, Own>>(values: SettingValues, given: Rest) {
  const { peerCertFile: certFile, peerKeyFile: keyFile, peerTrustedCaFile: trustedCaFile, ...notFiles } = given;
  const { peerCrlFile: crlFile, peerAutoTls, ...others } = notFiles;
  const { selfSignedCertValidity: validityYears } = values;
  if ((certFile === '') !== (keyFile === '')) throw new ConfigError('--peer-cert-file and --peer-key-file go together');
  if (trustedCaFile === '' && crlFile !== '') {
    throw new ConfigError(`${flagOf('peerCrlFile')} needs --peer-trusted-ca-file: the authorities of the servers`);
  }
  const isSelfSigned = peerAutoTls && certFile === '';
  const peerTls: PeerTlsConfig = Object.freeze({
    options: Object.freeze({
      files: Object.freeze({ certFile, keyFile, trustedCaFile, crlFile }),
      allowedHostnames: [],
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

/** Settings of TLS between servers that have no effect, which the operator may not expect. */
export function strayPeerTls({ peerAutoTls, peerCertFile }: SettingValues): string[] {
  if (!peerAutoTls || peerCertFile === '') return [];
  return ['--peer-auto-tls makes no certificate: --peer-cert-file gives one'];
}
