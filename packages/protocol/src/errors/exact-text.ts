import { errorCatalogue } from './error-catalogue.ts';

const prefix = 'etcdserver: ';
const texts = new Set<string>(Object.values(errorCatalogue).map(({ text }) => text));

/**
 * The text as it may leave a server: one of etcd's has nothing behind it, since clients look errors up by the whole
 * text. What stands behind one is cut off; every other text is what it was.
 */
export function exactText(message: string): string {
  if (!message.startsWith(prefix) || texts.has(message)) return message;
  let longest = '';
  for (const text of texts) if (text.length > longest.length && message.startsWith(text)) longest = text;
  return longest === '' ? message : longest;
}
