import { Buffer } from 'node:buffer';

/**
 * SQL with the values inlined: text as a hex literal of its UTF-8 bytes, a number as its digits. So neither the
 * character set nor the SQL mode of a connection matters, and no prepared statement is needed, which a proxy might
 * lose.
 */
export function sqlText(parts: TemplateStringsArray, ...values: readonly (string | number | bigint)[]): string {
  return parts.map((part, at) => `${part}${at < values.length ? literal(values[at] ?? '') : ''}`).join('');
}

function literal(value: string | number | bigint): string {
  if (typeof value === 'string') return `X'${Buffer.from(value, 'utf8').toString('hex')}'`;
  if (typeof value === 'number' && !Number.isSafeInteger(value)) throw new RangeError(`${value} is no whole number`);
  return `${value}`;
}
