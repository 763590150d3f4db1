import { X509Certificate } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Random } from '../random/random.ts';
import { selfSignedCertificate } from './self-signed-certificate.ts';

const dayMs = 24 * 60 * 60 * 1000;
/** The clocks of clients may be behind. */
const backdatedMs = 60 * 60 * 1000;

export interface SelfSignedFilesOptions {
  /** Made if it is missing (0700). */
  readonly folder: string;
  readonly hosts: readonly string[];
  readonly validityYears: number;
  readonly nowMs: number;
  readonly random: Random;
}

/**
 * The names of a self-signed certificate and its key in the folder. Those of an earlier start are used again, since
 * clients may have copied the certificate to trust it, unless it has expired.
 */
export async function selfSignedFiles(
  options: SelfSignedFilesOptions,
): Promise<{ readonly certFile: string; readonly keyFile: string }> {
  const { folder, hosts, validityYears, nowMs, random } = options;
  const files = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') };
  if (await isValid(files, nowMs)) return files;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { cert, key } = selfSignedCertificate({
    hosts,
    notBeforeMs: nowMs - backdatedMs,
    notAfterMs: nowMs + validityYears * 365 * dayMs,
    serial: random.bytes(16),
  });
  await replace(files.keyFile, key);
  await replace(files.certFile, cert);
  return files;
}

/** False, too, for files that are missing or broken. */
async function isValid({ certFile, keyFile }: { certFile: string; keyFile: string }, nowMs: number): Promise<boolean> {
  try {
    await readFile(keyFile);
    return Date.parse(new X509Certificate(await readFile(certFile)).validTo) > nowMs;
  } catch {
    return false;
  }
}

async function replace(name: string, text: string): Promise<void> {
  await writeFile(`${name}.tmp`, text, { mode: 0o600 });
  await rename(`${name}.tmp`, name);
}
