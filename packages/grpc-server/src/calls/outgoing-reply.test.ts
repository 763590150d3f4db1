import { expect, test } from 'vitest';
import { startTestServer } from '@tenure/test-support';
import { UnreadClient } from '@tenure/test-support';
import type { MethodHandler } from './call.ts';

const pieceBytes = 64 * 1024;
const patience = { timeout: 20_000, interval: 5 };

test('a piece of a reply is built when the one before has left, and all are held until the last one', async () => {
  let pieces = 0;
  const reply: MethodHandler = {
    kind: 'unary',
    handle: () => ({
      heldBytes: 8,
      within: () => ({
        framedBytes: 5 * pieceBytes,
        nextPiece: () => {
          pieces += 1;
          return Buffer.alloc(pieceBytes);
        },
      }),
    }),
  };
  const { transport, port } = await startTestServer({ '/t.T/Long': reply });
  const client = new UnreadClient(port);
  const stream = client.call('/t.T/Long');
  await expect.poll(() => pieces, patience).toBe(1);
  expect(transport.replyBytes).toBe(5 * pieceBytes);
  client.session.settings({ initialWindowSize: pieceBytes });
  await new Promise((resolve) => stream.on('close', resolve));
  expect(pieces).toBe(5);
  await expect.poll(() => transport.replyBytes, patience).toBe(0);
  client.session.destroy();
  await transport.close({ graceMs: 50 });
});
