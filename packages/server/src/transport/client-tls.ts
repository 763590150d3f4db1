import type { ListenerTls } from '@tenure/grpc-server';
import { nameFault } from '../tls/allowed-names.ts';
import type { TlsCredentials } from '../tls/tls-credentials.ts';

/** How clients use TLS at one address. */
export interface ClientTls {
  readonly credentials: TlsCredentials;
  /** The common name of a client's certificate is told to services. */
  readonly namesCaller: boolean;
}

/** The same for a listener, with the certificates as their files have them at each handshake. */
export function listenerTls({ credentials, namesCaller }: ClientTls): ListenerTls {
  return {
    context: credentials.context,
    onChange: (listener) => credentials.onChange(listener),
    requiresCertificate: credentials.options.files.trustedCaFile !== '',
    faultOf: (certificate) => nameFault(certificate, credentials.options),
    namesCaller,
  };
}
