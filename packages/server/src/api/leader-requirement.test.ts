import * as grpc from '@grpc/grpc-js';
import { afterEach, describe, expect, test } from 'vitest';
import { LeaderRequirement } from './leader-requirement.ts';
import { echo, startTestServer } from '@tenure/test-support';
import type { MethodHandler } from '../transport/transport.ts';

const raw = (value: Buffer): Buffer => value;
const noLeader = { code: 14, details: 'etcdserver: no leader' };
const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const closed: string[] = [];
const routes = new Map<string, MethodHandler>([
  ['/t.T/Echo', { kind: 'unary', handle: echo }],
  [
    '/t.T/Talk',
    {
      kind: 'bidi',
      handle: (call) => {
        call.onMessage = (message) => void call.send(echo(message));
        call.onClose = () => closed.push('talk');
      },
    },
  ],
  [
    '/t.T/Listen',
    {
      kind: 'serverStream',
      handle: async (request, _call, send) => {
        await send(echo(request));
        await new Promise(() => {});
      },
    },
  ],
]);

interface Stream {
  readonly first: Promise<string>;
  readonly ended: Promise<{ code: number; details: string }>;
  isOver: boolean;
}

async function start() {
  let has = true;
  const requirement = new LeaderRequirement(() => has);
  const { transport, port } = await startTestServer(Object.fromEntries(requirement.guard(routes)));
  cleanups.push(() => transport.close({ graceMs: 200 }));
  const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
  cleanups.push(() => client.close());
  const metadataOf = (value: string | undefined): grpc.Metadata => {
    const metadata = new grpc.Metadata();
    if (value !== undefined) metadata.set('hasleader', value);
    return metadata;
  };
  const observe = (call: grpc.ClientDuplexStream<Buffer, Buffer> | grpc.ClientReadableStream<Buffer>): Stream => {
    call.on('error', () => {});
    const stream: Stream = {
      first: new Promise((resolve) => call.once('data', (bytes: Buffer) => resolve(bytes.toString()))),
      ended: new Promise((resolve) => {
        call.on('status', ({ code, details }) => {
          stream.isOver = true;
          resolve({ code, details });
        });
      }),
      isOver: false,
    };
    return stream;
  };
  return {
    requirement,
    setLeader: (value: boolean) => (has = value),
    unary: (value?: string): Promise<string | { code: number; details: string }> =>
      new Promise((resolve) => {
        client.makeUnaryRequest('/t.T/Echo', raw, raw, Buffer.from('hi'), metadataOf(value), (error, reply) => {
          resolve(error === null ? String(reply) : { code: error.code, details: error.details });
        });
      }),
    talk: (value?: string): Stream => {
      const call = client.makeBidiStreamRequest('/t.T/Talk', raw, raw, metadataOf(value));
      call.write(Buffer.from('hi'));
      return observe(call);
    },
    listen: (value?: string): Stream =>
      observe(client.makeServerStreamRequest('/t.T/Listen', raw, raw, Buffer.from('hi'), metadataOf(value))),
  };
}

describe('hasleader', () => {
  test('accepts every call while there is a leader', async () => {
    const { unary, talk, listen } = await start();
    expect(await unary('true')).toBe('hi');
    expect(await talk('true').first).toBe('hi');
    expect(await listen('true').first).toBe('hi');
  });

  test('refuses calls at once while there is none; calls without it are accepted', async () => {
    const { unary, talk, listen, setLeader } = await start();
    setLeader(false);
    expect(await unary('true')).toEqual(noLeader);
    expect(await talk('true').ended).toEqual(noLeader);
    expect(await listen('true').ended).toEqual(noLeader);
    for (const value of [undefined, 'false', 'TRUE', '']) {
      expect(await unary(value)).toBe('hi');
      expect(await talk(value).first).toBe('hi');
    }
    expect(await listen().first).toBe('hi');
  });

  test('ends the streams that have it when the leader is lost for too long, and no others', async () => {
    const { talk, listen, requirement, setLeader } = await start();
    const requiring = [talk('true'), listen('true')];
    const others = [talk(), listen()];
    for (const { first } of [...requiring, ...others]) await first;
    closed.length = 0;
    setLeader(false);
    expect(requiring.some(({ isOver }) => isOver)).toBe(false);
    requirement.lost();
    for (const { ended } of requiring) expect(await ended).toEqual(noLeader);
    expect(closed).toEqual(['talk']);
    expect(others.some(({ isOver }) => isOver)).toBe(false);
    requirement.lost();
    setLeader(true);
    expect(await talk('true').first).toBe('hi');
  });
});
