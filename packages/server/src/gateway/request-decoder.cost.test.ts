import type { DescMessage } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import { expect, test } from 'vitest';
import { RequestDecoder } from './request-decoder.ts';
import { longestTurnMs } from './testing/longest-turn.ts';

/** No request may take longer on the event loop. */
const limitMs = 20;
/** As a call reads its body. */
const bytesPerTurn = 16 * 1024;
const maxMessageBytes = 2 * 1024 * 1024;
const txn = etcdserverpb.TxnRequestSchema;

async function decode(descriptor: DescMessage, json: Buffer): Promise<void> {
  const decoder = new RequestDecoder(descriptor, maxMessageBytes);
  for (let at = 0; at < json.length;) {
    at += decoder.read(json.subarray(at, at + bytesPerTurn));
    await new Promise((resolve) => void setImmediate(resolve));
  }
  expect(decoder.finish()).toBe(true);
  expect(decoder.take().kind).toBe('message');
}

function nestedTxn(depth: number): string {
  return `${'{"success":[{"requestTxn":'.repeat(depth)}{}${'}]}'.repeat(depth)}`;
}

test.each([
  ['a transaction of 500,000 empty operations', `{"success":[${Array(500_000).fill('{}').join(',')}]}`],
  // Long lengths, which are inserted at the end, are as many as they can be.
  [
    'transactions that nest deeply',
    `{"success":[${Array(120)
      .fill(`{"requestTxn":${nestedTxn(1500)}}`)
      .join(',')}]}`,
  ],
  ['an unknown name of 6 MB', `{"${'\u00e9'.repeat(3_000_000)}":1}`],
  ['an unknown value of 6 MB', `{"x":"${'\u00e9'.repeat(3_000_000)}"}`],
  ['an unknown value of a million escapes', `{"x":"${String.raw`\u00e9`.repeat(1_000_000)}"}`],
  ['an unknown list of 3,000,000 numbers', `{"x":[${'1,'.repeat(3_000_000)}1]}`],
])('%s leaves the event loop in time', async (_name, json) => {
  const bytes = Buffer.from(json);
  expect(await longestTurnMs(() => decode(txn, bytes))).toBeLessThan(limitMs);
});
