/**
 * A status text as encoded in the `grpc-message` trailer: UTF-8 in which every byte outside printable ASCII, and the
 * percent sign, is written %XX. A lone surrogate, which UTF-8 cannot represent, becomes U+FFFD.
 */
export function encodeGrpcMessage(text: string): string {
  if (!needsEscape.test(text)) return text;
  let encoded = '';
  for (const byte of Buffer.from(text, 'utf8')) {
    if (byte >= 0x20 && byte <= 0x7e && byte !== percent) encoded += String.fromCharCode(byte);
    else encoded += '%' + (byte < 16 ? '0' : '') + byte.toString(16).toUpperCase();
  }
  return encoded;
}

const percent = 0x25;
const needsEscape = /[^\x20-\x7e]|%/;
