import { constants } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { Clock } from '../time/clock.ts';
import type { TlsFiles, TlsOptions } from './tls-options.ts';

/** A new file is used this long after it was written, or a little later. */
const lookIntervalMs = 1000;
/** Of one file. A revocation list has some forty bytes for each certificate. */
const maxFileBytes = 16 * 1024 * 1024;
/** Curves that take little processor time: the client chooses among these. */
const curves = 'X25519:P-256:P-384';
/** OpenSSL's SSL_OP_NO_RENEGOTIATION, which Node's types do not have. */
const noRenegotiation = 0x4000_0000;

export interface CredentialsLog {
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
}

export interface CredentialsParts {
  readonly clock: Clock;
  readonly log: CredentialsLog;
}

/**
 * A certificate with its key, and the authorities that it trusts, as the files hold them now. The files are looked at
 * every second, under their names, so that a file that was renamed into place and a symbolic link that points elsewhere
 * count as well. Files that cannot be used change nothing: those read before stay in use, and the log says so once.
 *
 * The result is for new handshakes. A connection keeps the keys of its own handshake.
 */
export class TlsCredentials {
  readonly options: TlsOptions;
  readonly #parts: CredentialsParts;
  readonly #listeners = new Set<(context: SecureContextOptions) => void>();
  #context: SecureContextOptions;
  /** The state of the files that was looked at last, whether they could be used or not. */
  #seen: string;
  /** The files that could not be used; the next look reports them, if they are still the same. */
  #broken: { readonly seen: string; readonly error: unknown; isReported: boolean } | undefined;
  #cancel: () => void = () => {};
  #isClosed = false;

  /** Rejects with a message for the operator when the files cannot be used. */
  static async open(options: TlsOptions, parts: CredentialsParts): Promise<TlsCredentials> {
    const seen = await fingerprint(options.files);
    return new TlsCredentials(options, parts, await readContext(options), seen);
  }

  private constructor(options: TlsOptions, parts: CredentialsParts, context: SecureContextOptions, seen: string) {
    this.options = options;
    this.#parts = parts;
    this.#context = context;
    this.#seen = seen;
    this.#lookLater();
  }

  /** What a handshake that begins now uses. */
  get context(): SecureContextOptions {
    return this.#context;
  }

  /** Calls `listener` with each later context. */
  onChange(listener: (context: SecureContextOptions) => void): void {
    this.#listeners.add(listener);
  }

  /** Looks at the files no more. */
  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  #lookLater(): void {
    this.#cancel = this.#parts.clock.after(lookIntervalMs, () => void this.#look());
  }

  async #look(): Promise<void> {
    const { files } = this.options;
    const seen = await fingerprint(files).catch((error: unknown) => this.#unusable(String(error), error));
    if (seen !== undefined && (seen !== this.#seen || this.#broken !== undefined)) await this.#read(seen);
    if (!this.#isClosed) this.#lookLater();
  }

  async #read(seen: string): Promise<void> {
    this.#seen = seen;
    try {
      const context = await readContext(this.options);
      if (this.#isClosed) return;
      const isSame = sameContext(context, this.#context);
      this.#broken = undefined;
      if (isSame) return;
      this.#context = context;
      for (const listener of this.#listeners) listener(context);
      this.#parts.log.info({ files: this.options.files }, 'the TLS files have changed: new connections use them');
    } catch (error) {
      this.#unusable(seen, error);
    }
  }

  /** A certificate and its key are often written one after the other, so the first look reports nothing. */
  #unusable(seen: string, error: unknown): undefined {
    if (this.#broken?.seen !== seen) {
      this.#broken = { seen, error, isReported: this.#broken?.isReported ?? false };
      return;
    }
    if (this.#broken.isReported) return;
    this.#broken.isReported = true;
    this.#parts.log.warn({ err: error }, 'the TLS files have changed and cannot be used: the earlier ones stay in use');
  }
}

/** Reads the files and checks that they fit together. */
async function readContext({ files, minVersion, maxVersion, ciphers }: TlsOptions): Promise<SecureContextOptions> {
  const { certFile, keyFile, trustedCaFile, crlFile } = files;
  const own = certFile === '' ? {} : await readPair(certFile, keyFile);
  const ca = trustedCaFile === '' ? undefined : (await readNamed(trustedCaFile)).toString('latin1');
  const crl = crlFile === '' ? undefined : revocationLists(await readNamed(crlFile));
  const context: SecureContextOptions = {
    ...own,
    ...(ca === undefined ? {} : { ca }),
    ...(crl === undefined ? {} : { crl }),
    minVersion,
    maxVersion,
    ciphers,
    honorCipherOrder: true,
    ecdhCurve: curves,
    // Without tickets each connection has a handshake of its own, in which its certificate is checked as of now: a
    // resumed one would keep the result of the first, also after a revocation.
    secureOptions: constants.SSL_OP_NO_TICKET | noRenegotiation,
  };
  if (ca !== undefined && !ca.includes('-----BEGIN CERTIFICATE-----')) {
    throw new Error(`${trustedCaFile} holds no certificate in PEM`);
  }
  try {
    createSecureContext(context);
  } catch (error) {
    const others = [trustedCaFile, crlFile].filter((name) => name !== '').join(', ');
    throw fault(`TLS cannot be set up with ${others === '' ? certFile : others}`, error);
  }
  return context;
}

async function readPair(certFile: string, keyFile: string): Promise<{ readonly cert: string; readonly key: string }> {
  const cert = (await readNamed(certFile)).toString('latin1');
  const key = (await readNamed(keyFile)).toString('latin1');
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw fault(`${certFile} and ${keyFile} are no certificate with its key`, error);
  }
  return { cert, key };
}

async function readNamed(name: string): Promise<Buffer> {
  const bytes = await readFile(name);
  if (bytes.length > maxFileBytes) throw new Error(`${name} is larger than ${maxFileBytes} bytes`);
  return bytes;
}

/** OpenSSL reads only the first list of a text, and no DER. */
function revocationLists(bytes: Buffer): string[] {
  const derSequence = 0x30;
  if (bytes[0] === derSequence) {
    const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
    return [['-----BEGIN X509 CRL-----', ...lines, '-----END X509 CRL-----', ''].join('\n')];
  }
  const text = bytes.toString('latin1');
  // A text without a list is refused below, with OpenSSL's own reason.
  return text.match(/-----BEGIN X509 CRL-----[^-]+-----END X509 CRL-----/g) ?? [text];
}

function sameContext(one: SecureContextOptions, other: SecureContextOptions): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Differs when a file was written, replaced, or is now another one under the same name. */
async function fingerprint({ certFile, keyFile, trustedCaFile, crlFile }: TlsFiles): Promise<string> {
  const names = [certFile, keyFile, trustedCaFile, crlFile].filter((name) => name !== '');
  const stats = await Promise.all(names.map((name) => stat(name, { bigint: true })));
  return stats.map((each: BigIntStats) => [each.dev, each.ino, each.size, each.mtimeNs, each.ctimeNs].join()).join(';');
}

function fault(what: string, cause: unknown): Error {
  return new Error(`${what}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
}
