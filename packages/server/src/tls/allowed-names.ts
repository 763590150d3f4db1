import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { commonNameOf } from '@tenure/grpc-server';
import type { TlsOptions } from './tls-options.ts';

/**
 * Why a certificate that an authority has signed is not accepted all the same; undefined if it is. Undefined also
 * without any allowed name.
 */
export function nameFault(
  certificate: X509Certificate | undefined,
  { allowedHostnames, allowedCommonNames }: Pick<TlsOptions, 'allowedHostnames' | 'allowedCommonNames'>,
): string | undefined {
  if (allowedHostnames.length > 0 && !allowedHostnames.some((name) => certificate && isFor(certificate, name))) {
    return 'the certificate is for none of the allowed host names';
  }
  if (allowedCommonNames.length === 0) return undefined;
  const commonName = certificate && commonNameOf(certificate);
  const isAllowed = commonName !== undefined && allowedCommonNames.includes(commonName);
  return isAllowed ? undefined : 'the common name of the certificate is not allowed';
}

function isFor(certificate: X509Certificate, name: string): boolean {
  if (isIP(name) !== 0) return certificate.checkIP(name) !== undefined;
  return certificate.checkHost(name, { subject: 'never' }) !== undefined;
}
