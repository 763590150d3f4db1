import { errorCatalogue } from './error-catalogue.ts';

const prefix = 'etcdserver: ';
const texts = new Set<string>(Object.values(errorCatalogue).map(({ text }) => text));

/**
 * The text that a server may send: one of etcd's has no suffix, since clients look errors up by the whole text. A
 * suffix is removed; any other text is unchanged.
 */
export function exactText(message: string): string {
  if (!message.startsWith(prefix) || texts.has(message)) return message;
  let longest = '';
  for (const text of texts) if (text.length > longest.length && message.startsWith(text)) longest = text;
  return longest === '' ? message : longest;
}
