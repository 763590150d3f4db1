import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ServerOptions } from './server-options.ts';

/** The flags for logging in, which have the same names everywhere. */
export function authFlags({ bcryptCost, simpleTokenTtlSeconds, jwtTtlSeconds }: ServerOptions): string[] {
  const flags: string[] = [];
  if (bcryptCost !== undefined) flags.push(`--bcrypt-cost=${bcryptCost}`);
  if (simpleTokenTtlSeconds !== undefined) flags.push(`--auth-token-ttl=${simpleTokenTtlSeconds}`);
  if (jwtTtlSeconds !== undefined) {
    const { publicKey, privateKey } = keyFiles();
    flags.push(`--auth-token=jwt,pub-key=${publicKey},priv-key=${privateKey},sign-method=RS256,ttl=${jwtTtlSeconds}s`);
  }
  return flags;
}

let files: { readonly publicKey: string; readonly privateKey: string } | undefined;

/** One key pair for all servers of this process. Its files are removed when the process ends. */
function keyFiles(): { readonly publicKey: string; readonly privateKey: string } {
  if (files !== undefined) return files;
  const folder = mkdtempSync(join(tmpdir(), 'conformance-keys-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  files = { publicKey: join(folder, 'public.pem'), privateKey: join(folder, 'private.pem') };
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  writeFileSync(files.publicKey, publicKey.export({ type: 'spki', format: 'pem' }));
  writeFileSync(files.privateKey, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  return files;
}
