import { setting, trueOrFalse } from './setting.ts';

const asGiven = (text: string): string => text;

/** The settings of TLS between servers. */
export const peerSettings = {
  peerCertFile: setting({
    group: 'Servers',
    value: 'FILE',
    fallback: '',
    fallbackShown: 'none',
    help:
      'PEM file with the certificate that this server shows to other servers. It is for both sides of a connection ' +
      '(serverAuth and clientAuth).',
    parse: asGiven,
  }),
  peerKeyFile: setting({
    group: 'Servers',
    value: 'FILE',
    fallback: '',
    fallbackShown: 'none',
    help: 'PEM file with the key of --peer-cert-file.',
    parse: asGiven,
  }),
  peerTrustedCaFile: setting({
    group: 'Servers',
    value: 'FILE',
    fallback: '',
    fallbackShown: "Node's own authorities",
    help:
      'PEM file with the authorities that sign the certificates of servers. A server dials another one with TLS at ' +
      'its https:// addresses, and checks there that the certificate is for that host.',
    parse: asGiven,
  }),
  peerCrlFile: setting({
    group: 'Servers',
    value: 'FILE',
    fallback: '',
    fallbackShown: 'none',
    help: 'PEM or DER file with what those authorities have revoked; in PEM, a list for each of them.',
    parse: asGiven,
  }),
  peerAutoTls: setting({
    group: 'Servers',
    value: 'true|false',
    fallback: 'false',
    isSwitch: true,
    help:
      'Do without an authority: make a self-signed certificate in DATA-DIR/fixtures/peer, unless --peer-cert-file ' +
      "gives one, and accept any of another server. The cluster's secret, which is in the log, still tells servers " +
      'from others, for each connection. Give all servers the same.',
    parse: trueOrFalse,
  }),
} as const;
