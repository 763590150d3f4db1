import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { GrpcCode } from '@tenure/grpc-server';
import { GrpcLeaderStream } from './grpc-leader-stream.ts';
import type { LinkEnd } from './leader-stream.ts';

const settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
const goaway = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

function endOf(url: string): Promise<LinkEnd> {
  return new Promise((onEnd) => {
    const stream = new GrpcLeaderStream(url, { onOpen: () => {}, onMessage: () => {}, onDrain: () => {}, onEnd });
    expect(stream.write(Buffer.alloc(0))).toBe(false);
  });
}

test('the stream ends if the leader closes after its SETTINGS, or if its address is invalid', async () => {
  for (const words of [settings, [...settings, ...goaway]]) {
    const leader = createServer((socket) => {
      socket.on('error', () => {});
      socket.end(Buffer.from(words));
    });
    leader.listen(0, '127.0.0.1');
    await once(leader, 'listening');
    const { port } = leader.address() as AddressInfo;
    expect((await endOf(`http://127.0.0.1:${port}`)).code).toBe(GrpcCode.unavailable);
    leader.close();
  }
  expect(await endOf('http://1.2.3.4.5:2379')).toEqual({ code: GrpcCode.unavailable, details: 'Invalid URL' });
});
