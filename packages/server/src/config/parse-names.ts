import { ConfigError } from './config-error.ts';

const maxNames = 64;

/** Comma-separated names of a certificate. Throws ConfigError with the reason. */
export function parseNames(text: string): readonly string[] {
  const names = text === '' ? [] : text.split(',').map((name) => name.trim());
  if (names.length > maxNames) throw new ConfigError(`must be at most ${maxNames} names`);
  if (names.includes('')) throw new ConfigError('must not have an empty name');
  return names;
}
