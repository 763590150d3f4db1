import { parseAdvertiseUrls, parseListenUrls } from './listen-url.ts';
import { parseNames } from './parse-names.ts';
import { setting, trueOrFalse } from './setting.ts';

const asGiven = (text: string): string => text;

/** The settings of connections between servers. */
export const peerSettings = {
  listenPeerUrls: setting({
    group: 'Servers',
    value: 'URL,...',
    fallback: '',
    fallbackShown: 'none: servers use the addresses for clients',
    help:
      'On a shared log: addresses that are for other servers alone, https:// with TLS and http:// without; port 0 ' +
      'takes a free one. Servers do not use the addresses for clients then.',
    parse: (text: string) => (text === '' ? [] : parseListenUrls(text)),
  }),
  initialAdvertisePeerUrls: setting({
    group: 'Servers',
    value: 'URL,...',
    fallback: '',
    fallbackShown: 'the addresses of --listen-peer-urls',
    help: 'Addresses at which other servers reach those of --listen-peer-urls.',
    parse: parseAdvertiseUrls,
  }),
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
  peerClientCertAuth: setting({
    group: 'Servers',
    value: 'true|false',
    fallback: 'false',
    isSwitch: true,
    help:
      'At --listen-peer-urls: take only servers with a certificate that --peer-trusted-ca-file has signed. That file ' +
      'alone means the same, as in etcd.',
    parse: trueOrFalse,
  }),
  peerCertAllowedCn: setting({
    group: 'Servers',
    value: 'NAME,...',
    fallback: '',
    fallbackShown: 'any',
    help: 'Connect only to servers, and at --listen-peer-urls take only servers, with one of these common names.',
    parse: parseNames,
  }),
  peerCertAllowedHostname: setting({
    group: 'Servers',
    value: 'NAME,...',
    fallback: '',
    fallbackShown: 'any',
    help: 'The same by DNS names or IP addresses, of which one must be an alternative name of the certificate.',
    parse: parseNames,
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
