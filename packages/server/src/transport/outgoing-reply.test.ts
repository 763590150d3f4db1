import { connect, createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { Budget } from './budget.ts';
import { OutgoingReply, piecesOf } from './outgoing-reply.ts';

const pieceBytes = 64 * 1024;
const patience = { timeout: 20_000, interval: 5 };

test('each piece taken by a slow reader is reported, and the bytes are held until the last one', async () => {
  const server = createServer();
  const opened = new Promise<ServerHttp2Stream>((resolve) => server.on('stream', resolve));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // A window of one piece: it opens again when the data has been read.
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    settings: { initialWindowSize: pieceBytes },
  });
  const reading = client.request({ ':path': '/' });
  const stream = await opened;
  stream.respond({ ':status': 200 });
  const budget = new Budget(1);
  const taken: boolean[] = [];
  const bytes = Buffer.alloc(4 * pieceBytes + 1);
  const pieces = piecesOf(bytes);
  const reply = new OutgoingReply(stream, pieces, pieces.nextPiece(), budget, (isAll) => taken.push(isAll));
  stream.on('close', () => reply.streamClosed());
  expect(budget.taken).toBe(bytes.length);
  // Paused, and everything that fits the window has been taken.
  await expect.poll(() => taken, patience).toEqual([false]);
  expect(budget.taken).toBe(bytes.length);
  let readBytes = 0;
  for (let pieces = 1; pieces < 5; pieces += 1) {
    while (readBytes < pieces * pieceBytes) {
      const chunk = reading.read() as Buffer | null;
      if (chunk === null) await new Promise((resolve) => reading.once('readable', resolve));
      else readBytes += chunk.length;
    }
    await expect.poll(() => taken.length, patience).toBeGreaterThan(pieces);
  }
  expect(taken).toEqual([false, false, false, false, true]);
  expect(budget.taken).toBe(0);
  stream.end();
  reading.resume();
  await new Promise((resolve) => reading.on('close', resolve));
  expect(budget.taken).toBe(0);
  client.close();
  server.close();
});
