import type { X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import type { SecureContextOptions } from 'node:tls';
import type { GrpcTls } from '@tenure/grpc-client';
import type { ServerConfig } from './config/server-config.ts';
import { hostsOf, type ClientTlsParts } from './open-client-tls.ts';
import { selfSignedFiles } from './tls/self-signed-files.ts';
import { nameFault } from './tls/allowed-names.ts';
import { TlsCredentials } from './tls/tls-credentials.ts';
import type { ClientTls } from './transport/client-tls.ts';

/** How this server uses TLS with other servers. */
export interface PeerTls {
  /** For the addresses that are for servers alone; undefined without a certificate. */
  readonly serve: ClientTls | undefined;
  /** For a connection to another server that begins now. */
  dial(): GrpcTls;
  close(): void;
}

/** Reads the files of TLS between servers, or makes a certificate. Rejects with a message for the operator. */
export async function openPeerTls(config: ServerConfig, parts: ClientTlsParts): Promise<PeerTls> {
  const { peerTls, dataDir, advertiseClientUrls, listenClientUrls } = config;
  const { listenPeerUrls, initialAdvertisePeerUrls } = config;
  const { options, selfSigned, isUnverified } = peerTls;
  const made =
    selfSigned &&
    (await selfSignedFiles({
      folder: join(dataDir, 'fixtures', 'peer'),
      hosts: hostsOf([...listenClientUrls, ...listenPeerUrls], [...advertiseClientUrls, ...initialAdvertisePeerUrls]),
      validityYears: selfSigned.validityYears,
      nowMs: parts.clock.wallMs(),
      random: parts.random,
    }));
  const files = { ...options.files, ...made };
  if (files.certFile === '' && files.trustedCaFile === '') {
    return { serve: undefined, dial: () => ({ isUnverified }), close: () => {} };
  }
  const credentials = await TlsCredentials.open({ ...options, files }, parts);
  const refuses = (certificate: X509Certificate): string | undefined => nameFault(certificate, options);
  return {
    serve: files.certFile === '' ? undefined : { credentials, namesCaller: false },
    dial: () => ({ ...grpcTls(credentials.context), isUnverified, refuses }),
    close: () => credentials.close(),
  };
}

function grpcTls({ ca, cert, key, crl }: SecureContextOptions): GrpcTls {
  return { ca: bytesOf(ca), cert: bytesOf(cert), key: bytesOf(key), crl: crl as readonly string[] | undefined };
}

/** The credentials hold each file as one text. */
function bytesOf(text: unknown): Buffer | undefined {
  return typeof text === 'string' ? Buffer.from(text, 'latin1') : undefined;
}
