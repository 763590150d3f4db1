import { describe, expect, test } from 'vitest';
import { staticNames, staticTableByName, staticTableLength, staticValues } from './static-table.ts';
import { HpackJsPeer } from './testing/hpack-js-peer.ts';

describe('the static table', () => {
  test('has the entries that an independent implementation has', () => {
    expect(staticTableLength).toBe(61);
    const peer = new HpackJsPeer(4096);
    for (let index = 1; index <= staticTableLength; index++) {
      expect(peer.decode(Buffer.of(0x80 | index))).toEqual([[staticNames[index], staticValues[index]]]);
    }
  });

  test('finds each entry by name and value, and the first one by name', () => {
    for (let index = 1; index <= staticTableLength; index++) {
      const name = staticNames[index] ?? '';
      const found = staticTableByName.get(name);
      expect(found?.indexByValue.get(staticValues[index] ?? '')).toBe(index);
      expect(found?.index).toBe(staticNames.indexOf(name));
    }
  });
});
