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

interface KeyFiles {
  readonly folder: string;
  readonly publicKey: string;
  readonly privateKey: string;
}

let files: KeyFiles | undefined;

/** Removes the key pair, if there is one. For when all servers have stopped. */
export function removeKeyFiles(): void {
  if (files !== undefined) rmSync(files.folder, { recursive: true, force: true });
  files = undefined;
}

/** One key pair for all servers of this process. */
function keyFiles(): KeyFiles {
  if (files !== undefined) return files;
  const folder = mkdtempSync(join(tmpdir(), 'conformance-keys-'));
  files = { folder, publicKey: join(folder, 'public.pem'), privateKey: join(folder, 'private.pem') };
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  writeFileSync(files.publicKey, publicKey.export({ type: 'spki', format: 'pem' }));
  writeFileSync(files.privateKey, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  return files;
}
