import { describe, expect, test } from 'vitest';
import { HpackEncoder, type EncodedField } from './hpack-encoder.ts';
import { fieldsOf, generousDecoder } from './testing/decoded-block.ts';
import type { Field } from './testing/hpack-js-peer.ts';

const requests: readonly (readonly Field[])[] = [
  [
    [':method', 'GET'],
    [':scheme', 'http'],
    [':path', '/'],
    [':authority', 'www.example.com'],
  ],
  [
    [':method', 'GET'],
    [':scheme', 'http'],
    [':path', '/'],
    [':authority', 'www.example.com'],
    ['cache-control', 'no-cache'],
  ],
  [
    [':method', 'GET'],
    [':scheme', 'https'],
    [':path', '/index.html'],
    [':authority', 'www.example.com'],
    ['custom-key', 'custom-value'],
  ],
];

const cookie = 'foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1';
const responses: readonly (readonly Field[])[] = [
  ...['302', '307'].map((status): readonly Field[] => [
    [':status', status],
    ['cache-control', 'private'],
    ['date', 'Mon, 21 Oct 2013 20:13:21 GMT'],
    ['location', 'https://www.example.com'],
  ]),
  [
    [':status', '200'],
    ['cache-control', 'private'],
    ['date', 'Mon, 21 Oct 2013 20:13:22 GMT'],
    ['location', 'https://www.example.com'],
    ['content-encoding', 'gzip'],
    ['set-cookie', cookie],
  ],
];

const plainRequests = [
  '828684410f7777772e6578616d706c652e636f6d',
  '828684be58086e6f2d6361636865',
  '828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565',
];
const huffmanRequests = [
  '828684418cf1e3c2e5f23a6ba0ab90f4ff',
  '828684be5886a8eb10649cbf',
  '828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf',
];
const plainResponses = [
  '4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d54' +
    '6e1768747470733a2f2f7777772e6578616d706c652e636f6d',
  '4803333037c1c0bf',
  '88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a6970' +
    '7738666f6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b' +
    '206d61782d6167653d333630303b2076657273696f6e3d31',
];
const huffmanResponses = [
  '488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3',
  '4883640effc1c0bf',
  '88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab' +
    '77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007',
];

/** Announces the table of the examples with responses, which makes them evict. */
const smallTableBytes = 256;
const smallTableUpdate = '3fe101';

function read(blocks: readonly string[]): (readonly Field[])[] {
  const decoder = generousDecoder();
  return blocks.map((block) => fieldsOf(decoder, Buffer.from(block, 'hex')));
}

describe('the examples of RFC 7541, appendix C', () => {
  test.each<readonly [string, string, EncodedField]>([
    ['with indexing', '400a637573746f6d2d6b65790d637573746f6d2d686561646572', ['custom-key', 'custom-header']],
    ['without indexing', '040c2f73616d706c652f70617468', [':path', '/sample/path']],
    ['never indexed', '100870617373776f726406736563726574', ['password', 'secret']],
    ['indexed', '82', [':method', 'GET']],
  ])('C.2: a field %s', (_, block, field) => {
    expect(read([block])).toEqual([[field]]);
  });

  test('C.3: requests without Huffman code', () => {
    expect(read(plainRequests)).toEqual(requests);
  });

  test('C.4: requests with Huffman code, in both directions', () => {
    expect(read(huffmanRequests)).toEqual(requests);
    const encoder = new HpackEncoder();
    expect(requests.map((fields) => encoder.encode(fields).toString('hex'))).toEqual(huffmanRequests);
  });

  test('C.5: responses without Huffman code, with evictions', () => {
    expect(read([smallTableUpdate, ...plainResponses])).toEqual([[], ...responses]);
  });

  test('C.6: responses with Huffman code, with evictions, in both directions', () => {
    expect(read([smallTableUpdate, ...huffmanResponses])).toEqual([[], ...responses]);
    const encoder = new HpackEncoder();
    encoder.setPeerTableBytes(smallTableBytes);
    const blocks = [[], ...responses].map((fields) => encoder.encode(fields).toString('hex'));
    // The code of 307 is as long as the text, which is then left as it is.
    const [first, , third] = huffmanResponses;
    expect(blocks).toEqual([smallTableUpdate, first, plainResponses[1], third]);
  });
});
