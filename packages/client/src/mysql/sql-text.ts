import { Buffer } from 'node:buffer';

/**
 * SQL with its values in it: a text as the literal of its bytes in UTF-8, a number as its digits. So neither character
 * set nor SQL mode of a connection changes what is meant, and nothing is prepared that a proxy would lose.
 */
export function sqlText(parts: TemplateStringsArray, ...values: readonly (string | number | bigint)[]): string {
  return parts.map((part, at) => `${part}${at < values.length ? literal(values[at] ?? '') : ''}`).join('');
}

function literal(value: string | number | bigint): string {
  if (typeof value === 'string') return `X'${Buffer.from(value, 'utf8').toString('hex')}'`;
  if (typeof value === 'number' && !Number.isSafeInteger(value)) throw new RangeError(`${value} is no whole number`);
  return `${value}`;
}
