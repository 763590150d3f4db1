const encoder = new TextEncoder();

/** Names that some collation, some driver or some type of column takes for one, each with `word` in it. */
export function similarNames(word: string): readonly string[] {
  const ends = ['', ' ', '  ', '%', '_', '\u00a0', '\u200b', '\ufeff'];
  const letters = [
    'a',
    'A',
    'ä',
    'a\u0308',
    'Ä',
    'ａ',
    'ß',
    'ss',
    'ſ',
    's',
    'i',
    'I',
    'ı',
    'İ',
    'ñ',
    'n',
    'ｱ',
    'ア',
    'あ',
  ];
  const pictures = ['😀', '😁', '🏴', '🏴‍☠️', '👍', '👍🏽'];
  const all = [...ends, ...letters, ...pictures, ...pictures.map((picture) => `${picture} `)];
  const spelled = word === word.toUpperCase() ? word.toLowerCase() : word.toUpperCase();
  return [...all.map((end) => `${word}${end}`), spelled, ` ${word}`];
}

/** Names of so many bytes that differ in their last bytes only, in letters of one, two, three and four bytes. */
export function longNames(word: string, bytes: number): readonly string[] {
  return ['a', 'ä', 'あ', '😀'].flatMap((letter) => {
    const filled = fill(word, letter, bytes - 1);
    return [`${filled}x`, `${filled}y`];
  });
}

function fill(word: string, letter: string, bytes: number): string {
  const lettersOf = encoder.encode(letter).length;
  const room = bytes - encoder.encode(word).length;
  return `${word}${'.'.repeat(room % lettersOf)}${letter.repeat(Math.floor(room / lettersOf))}`;
}
