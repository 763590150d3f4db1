import { createPrivateKey, createPublicKey, createSecretKey, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { JwtSetting, JwtSignMethod } from '../config/auth-token.ts';

export interface JwtKeys {
  readonly verifying: KeyObject;
  /** Undefined on a server that only verifies. */
  readonly signing: KeyObject | undefined;
}

/** A shorter key can be guessed from a token; as NIST and jose demand. */
const minRsaBits = 2048;
const curves: Partial<Record<JwtSignMethod, string>> = { ES256: 'prime256v1', ES384: 'secp384r1', ES512: 'secp521r1' };

/** Throws an error for the operator when a file cannot be read, or has no key of this method. */
export function readJwtKeys({ signMethod, publicKeyFile, privateKeyFile }: JwtSetting): JwtKeys {
  if (signMethod.startsWith('HS')) {
    const secret = secretOf(signMethod, privateKeyFile);
    return { verifying: secret, signing: secret };
  }
  const signing = privateKeyFile === '' ? undefined : readKey('priv-key', privateKeyFile, createPrivateKey);
  const derived = signing === undefined ? undefined : createPublicKey(signing);
  const verifying = publicKeyFile === '' ? derived : readKey('pub-key', publicKeyFile, publicKeyOf);
  if (verifying === undefined) throw unusable('there is neither a priv-key nor a pub-key');
  if (derived !== undefined && !isSame(derived, verifying)) throw unusable('the pub-key is not that of the priv-key');
  checkType(signMethod, verifying);
  return { verifying, signing };
}

/** Unlike `equals`, which leaves an error to the next caller of OpenSSL when the types differ. */
function isSame(a: KeyObject, b: KeyObject): boolean {
  const [one, other] = [a, b].map((key) => key.export({ type: 'spki', format: 'der' }));
  return one !== undefined && other !== undefined && one.equals(other);
}

/** The whole file, with the end of a line if it has one, as in etcd. */
function secretOf(signMethod: JwtSignMethod, path: string): KeyObject {
  const bytes = readNamed('priv-key', path);
  const minBytes = Number(signMethod.slice(2)) / 8;
  if (bytes.length >= minBytes) return createSecretKey(bytes);
  throw unusable(`priv-key: ${path} has ${bytes.length} bytes, and ${signMethod} needs ${minBytes} or more`);
}

/** Node would make the public key of a private one, which an operator did not mean to give to every server. */
function publicKeyOf(pem: Buffer): KeyObject {
  if (pem.includes('PRIVATE KEY-----')) throw new Error('it is a private key');
  return createPublicKey(pem);
}

function checkType(
  signMethod: JwtSignMethod,
  { asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject,
): void {
  const wrong = (what: string): Error => unusable(`${signMethod} needs ${what}`);
  if (signMethod === 'EdDSA' && type !== 'ed25519') throw wrong('an Ed25519 key');
  const curve = curves[signMethod];
  if (curve !== undefined && details?.namedCurve !== curve) throw wrong(`a key of the curve ${curve}`);
  if (!signMethod.startsWith('RS') && !signMethod.startsWith('PS')) return;
  if (type !== 'rsa' || (details?.modulusLength ?? 0) < minRsaBits)
    throw wrong(`an RSA key of ${minRsaBits} bits or more`);
}

function readKey(option: string, path: string, parse: (pem: Buffer) => KeyObject): KeyObject {
  const pem = readNamed(option, path);
  try {
    return parse(pem);
  } catch (error) {
    throw unusable(`${option}: ${path} is no PEM file with such a key: ${messageOf(error)}`);
  }
}

function readNamed(option: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw unusable(`${option}: ${messageOf(error)}`);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function unusable(message: string): Error {
  return new Error(`--auth-token: ${message}`);
}
