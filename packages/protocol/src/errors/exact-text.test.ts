import { describe, expect, test } from 'vitest';
import { errorCatalogue } from './error-catalogue.ts';
import { exactText } from './exact-text.ts';

const texts = Object.values(errorCatalogue).map(({ text }) => text);

describe('the text of an error', () => {
  test("is etcd's, without any suffix", () => {
    for (const text of texts) {
      for (const more of ['', ': there is no leader', ' ', ', why']) expect(exactText(text + more)).toBe(text);
    }
  });

  test('is unchanged for any other text', () => {
    for (const text of ['', 'unknown service', 'etcdserver: of a version to come', `before ${texts[0]}`]) {
      expect(exactText(text)).toBe(text);
    }
  });
});
