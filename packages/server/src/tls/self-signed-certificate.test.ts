import { execFileSync } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { withTemporaryFolder } from '@tenure/test-support';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { systemRandom } from '../random/system-random.ts';
import { selfSignedCertificate } from './self-signed-certificate.ts';
import { selfSignedFiles } from './self-signed-files.ts';

function namedBy(certificate: X509Certificate, host: string): string | undefined {
  return isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host);
}

const nowMs = Date.UTC(2026, 0, 1);
const yearMs = 365 * 24 * 60 * 60 * 1000;

test('openssl and Node read a certificate for any addresses, dates and serial number', async () => {
  await withTemporaryFolder(async (folder) => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain()), { minLength: 1, maxLength: 20 }),
        fc.uint8Array({ minLength: 16, maxLength: 16 }),
        fc.integer({ min: 1, max: 100 }),
        (hosts, serial, years) => {
          const notAfterMs = nowMs + years * yearMs;
          const made = selfSignedCertificate({ hosts, notBeforeMs: nowMs, notAfterMs, serial: Buffer.from(serial) });
          const certificate = new X509Certificate(made.cert);
          expect(certificate.verify(certificate.publicKey)).toBe(true);
          expect(Date.parse(certificate.validTo)).toBe(notAfterMs);
          for (const host of hosts) expect(namedBy(certificate, host)).toBe(host);
          const file = join(folder, 'cert.pem');
          writeFileSync(file, made.cert);
          execFileSync('openssl', ['verify', '-x509_strict', '-purpose', 'sslserver', '-CAfile', file, file]);
        },
      ),
      { numRuns: 20 },
    );
  });
});

test('the files are made once, readable by their owner alone, and again when the certificate has expired', async () => {
  await withTemporaryFolder(async (folder) => {
    const options = { folder: join(folder, 'a', 'b'), hosts: ['localhost'], validityYears: 2, random: systemRandom };
    const { certFile, keyFile } = await selfSignedFiles({ ...options, nowMs });
    const first = readFileSync(certFile, 'utf8');
    expect([options.folder, certFile, keyFile].map((name) => statSync(name).mode & 0o777)).toEqual([
      0o700, 0o600, 0o600,
    ]);
    expect(new X509Certificate(first).checkPrivateKey(createPrivateKey(readFileSync(keyFile)))).toBe(true);
    await selfSignedFiles({ ...options, nowMs: nowMs + 2 * yearMs - 1000 });
    expect(readFileSync(certFile, 'utf8')).toBe(first);
    await selfSignedFiles({ ...options, nowMs: nowMs + 2 * yearMs + 1000 });
    const second = readFileSync(certFile, 'utf8');
    expect(second).not.toBe(first);
    writeFileSync(certFile, 'broken');
    await selfSignedFiles({ ...options, nowMs });
    expect(new X509Certificate(readFileSync(certFile)).checkHost('localhost')).toBe('localhost');
  });
});
