import { type GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import { errorCatalogue } from '@tenure/protocol';
import { frameMessage, RawClient, startTestServer, type TestServer } from '@tenure/test-support';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { statusFormat } from './status-format.ts';
import type { MethodHandler } from './transport.ts';

let refusal: GrpcStatus;
let server: TestServer;
let client: RawClient;

beforeAll(async () => {
  const routes: Record<string, MethodHandler> = {
    '/x/Unary': {
      kind: 'unary',
      handle: () => {
        throw refusal;
      },
    },
    '/x/Stream': { kind: 'serverStream', handle: () => Promise.reject(refusal) },
    '/x/Both': {
      kind: 'bidi',
      handle: (call) => {
        call.onMessage = () => {
          call.send(Buffer.alloc(5));
          call.end(refusal);
        };
      },
    },
  };
  server = await startTestServer(routes, {}, undefined, undefined, undefined, statusFormat);
  client = new RawClient(server.port);
});

afterAll(async () => {
  await client.close();
  await server.transport.close({ graceMs: 0 });
});

async function trailersOf(path: string): Promise<unknown> {
  const { trailers } = await client.call({ path, chunks: [frameMessage(Buffer.alloc(0))] });
  const { 'grpc-status': code, 'grpc-message': text, 'tenure-reason': reason } = trailers;
  return { code: Number(code), text: decodeURIComponent(String(text)), reason };
}

test.each(['/x/Unary', '/x/Stream', '/x/Both'])('no text of etcd leaves %s with a suffix', async (path) => {
  for (const { code, text } of Object.values(errorCatalogue)) {
    for (const more of ['', ': there is no leader', ' ']) {
      refusal = new GrpcStatus(code as GrpcCode, text + more);
      expect(await trailersOf(path)).toEqual({ code, text, reason: undefined });
    }
  }
});

test.each(['/x/Unary', '/x/Stream', '/x/Both'])('the reason of a refusal is sent %s in a trailer', async (path) => {
  const { code, text } = errorCatalogue.Timeout;
  refusal = new GrpcStatus(code, text, 'there is no leader');
  expect(await trailersOf(path)).toEqual({ code, text, reason: 'there is no leader' });
});
