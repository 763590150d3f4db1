export type TlsVersion = 'TLSv1.2' | 'TLSv1.3';

/**
 * PEM files, which are read again when they change; '' for none. A revocation list may also be DER. Only the side that
 * connects does without a certificate.
 */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** The authorities that sign the certificates of the other side. With them the other side must show one. */
  readonly trustedCaFile: string;
  /** Certificates that those authorities have revoked: one list for each authority in a chain. */
  readonly crlFile: string;
}

/** How one side of connections uses TLS. */
export interface TlsOptions {
  readonly files: TlsFiles;
  /** The other side's certificate must be valid for one of these names or IP addresses, if there are any. */
  readonly allowedHostnames: readonly string[];
  /** Its common name must be one of these, if there are any. */
  readonly allowedCommonNames: readonly string[];
  readonly minVersion: TlsVersion;
  readonly maxVersion: TlsVersion;
  /** In OpenSSL's form. */
  readonly ciphers: string;
}
