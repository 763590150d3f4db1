import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A CA, and certificates signed by it for a server at 127.0.0.1 and for a client: `ca.crt`, `server.crt` and `.key`,
 * `client.crt` and `.key` in the folder, and the paths that a client needs.
 */
export function makeCertificates(folder: string): { ca: Buffer; cert: Buffer; key: Buffer } {
  const openssl = (...args: string[]): void => {
    execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
  };
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  openssl('req', '-x509', ...newKey, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=test-authority');
  for (const name of ['server', 'client']) {
    const extension = ['-addext', 'subjectAltName=IP:127.0.0.1'];
    const signed = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-subj', `/CN=${name}`];
    openssl('req', '-x509', ...newKey, ...extension, ...signed, '-keyout', `${name}.key`, '-out', `${name}.crt`);
  }
  const read = (name: string): Buffer => readFileSync(join(folder, name));
  return { ca: read('ca.crt'), cert: read('client.crt'), key: read('client.key') };
}
