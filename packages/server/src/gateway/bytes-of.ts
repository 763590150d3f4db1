/** Base64 in either alphabet, with or without padding, as protojson reads it. Undefined for any other text. */
export function bytesOf(text: Buffer): Buffer | undefined {
  const isUrl = text.includes(0x2d) || text.includes(0x5f);
  const isPadded = text.length % 4 === 0;
  let digits = text.toString('latin1');
  // Go's decoder skips line ends, but counts them when it decides whether there is padding.
  if (text.includes(0x0a) || text.includes(0x0d)) digits = digits.replaceAll(/[\r\n]/g, '');
  if (isUrl && /[+/]/.test(digits)) return undefined;
  const padding = digits.endsWith('==') ? 2 : digits.endsWith('=') ? 1 : 0;
  const length = digits.length - padding;
  if (isPadded ? digits.length % 4 !== 0 : padding > 0) return undefined;
  if (length % 4 === 1) return undefined;
  const bytes = Buffer.from(digits, isUrl ? 'base64url' : 'base64');
  // Node skips characters that are not base64, which then are missing.
  return bytes.length === Math.floor((length * 3) / 4) && !digits.slice(0, length).includes('=') ? bytes : undefined;
}
