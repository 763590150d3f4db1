import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { isIP } from 'node:net';

export interface SelfSignedOptions {
  /** Names and IP addresses for which it is valid. */
  readonly hosts: readonly string[];
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** At least 8 random bytes. */
  readonly serial: Buffer;
}

export interface SelfSignedCertificate {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
}

/**
 * A certificate for a server that has none of an authority: X.509 version 3, a new key on P-256. Node signs, and has
 * nothing that writes certificates; the few structures of this one kind are written here, by the rules of DER.
 */
export function selfSignedCertificate(options: SelfSignedOptions): SelfSignedCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const toSign = certificateBody(options, publicKey);
  const signature = sign('sha256', toSign, privateKey);
  const der = sequence(toSign, signedWithSha256, tagged(0x03, Buffer.from([0]), signature));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    cert: ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n'),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

function certificateBody({ hosts, notBeforeMs, notAfterMs, serial }: SelfSignedOptions, publicKey: KeyObject): Buffer {
  const name = sequence(
    tagged(0x31, sequence(objectId('2.5.4.10'), utf8('tenure'))),
    tagged(0x31, sequence(objectId('2.5.4.3'), utf8('self-signed'))),
  );
  const extensions = sequence(
    extension('2.5.29.17', sequence(...hosts.map(subjectName)), { isCritical: false }),
    // Digital signature alone.
    extension('2.5.29.15', tagged(0x03, Buffer.from([7, 0x80])), { isCritical: true }),
    // Of a TLS server.
    extension('2.5.29.37', sequence(objectId('1.3.6.1.5.5.7.3.1')), { isCritical: false }),
    // No authority.
    extension('2.5.29.19', sequence(), { isCritical: true }),
  );
  return sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))),
    positiveInteger(serial),
    signedWithSha256,
    name,
    sequence(time(notBeforeMs), time(notAfterMs)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, extensions),
  );
}

/** A tag, the length of the content, and the content. */
function tagged(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const lengthBytes =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, Math.floor(length / 0x100), length % 0x100];
  return Buffer.concat([Buffer.from([tag, ...lengthBytes]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, ...parts);
}

/** Ends in seven bits a byte, the first two numbers in one. */
function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second, ...rest.flatMap(sevenBits)];
  return tagged(0x06, Buffer.from(bytes));
}

function sevenBits(number: number): number[] {
  const bytes = [number % 0x80];
  for (let left = Math.floor(number / 0x80); left > 0; left = Math.floor(left / 0x80)) {
    bytes.unshift(0x80 + (left % 0x80));
  }
  return bytes;
}

/** ecdsa-with-SHA256 */
const signedWithSha256 = sequence(objectId('1.2.840.10045.4.3.2'));

function utf8(text: string): Buffer {
  return tagged(0x0c, Buffer.from(text));
}

/** At most 20 bytes; the first one is between 1 and 0x7f, so that it is positive and as short as it can be. */
function positiveInteger(bytes: Buffer): Buffer {
  const trimmed = Buffer.from(bytes.subarray(0, 20));
  trimmed[0] = (trimmed[0]! & 0x7f) | 0x40;
  return tagged(0x02, trimmed);
}

/** Two digits of the year until 2049, four from then on. */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  return digits < '2050' ? tagged(0x17, Buffer.from(digits.slice(2))) : tagged(0x18, Buffer.from(digits));
}

function extension(id: string, content: Buffer, { isCritical }: { readonly isCritical: boolean }): Buffer {
  const critical = isCritical ? [tagged(0x01, Buffer.from([0xff]))] : [];
  return sequence(objectId(id), ...critical, tagged(0x04, content));
}

function subjectName(host: string): Buffer {
  const kind = isIP(host);
  if (kind === 0) return tagged(0x82, Buffer.from(host, 'latin1'));
  return tagged(0x87, kind === 4 ? Buffer.from(host.split('.').map(Number)) : ipv6Bytes(host));
}

function ipv6Bytes(host: string): Buffer {
  // WHATWG's URL writes the last four bytes in hex, too.
  const text = new URL(`http://[${host}]`).hostname.slice(1, -1);
  const [left = '', right] = text.split('::');
  const groups = (part: string): number[] => (part === '' ? [] : part.split(':').map((group) => parseInt(group, 16)));
  const [before, after] = [groups(left), groups(right ?? '')];
  const all = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
  return Buffer.from(all.flatMap((group) => [Math.floor(group / 0x100), group % 0x100]));
}
