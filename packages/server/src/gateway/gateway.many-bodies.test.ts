import {
  dataFrame,
  endHeaders,
  endStream,
  frameTypes,
  headerBlock,
  http2Frame,
  FrameClient,
} from '@tenure/test-support';
import { expect, test } from 'vitest';
import { serveGateway } from './testing/serve-gateway.ts';

/** Of the largest frame, which is as much as is converted in one turn. */
const frameBytes = 16_384;

test('bodies that arrive faster than they are converted are answered, also without room for them', async () => {
  const put = '/etcdserverpb.KV/Put';
  const limits = { maxConnectionRequestBytes: 20_000, maxTotalRequestBytes: 10_000_000 };
  const { port, close } = await serveGateway({
    routes: { [put]: { kind: 'unary', handle: () => Buffer.alloc(5) } },
    limits,
  });
  const client = new FrameClient(port).open();
  try {
    const head = headerBlock([
      [':method', 'POST'],
      [':scheme', 'http'],
      [':path', '/v3/kv/put'],
    ]);
    const body = Buffer.from(`{"value":"${'A'.repeat(60_000)}"}`);
    const ids = Array.from({ length: 2 }, (_, index) => 2 * index + 1);
    // All in one write: the server has most of it before it converts much of any.
    const frames = ids.map((id) => http2Frame(frameTypes.headers, endHeaders, id, head));
    for (let at = 0; at < body.length; at += frameBytes) {
      const flags = at + frameBytes < body.length ? 0 : endStream;
      for (const id of ids) frames.push(dataFrame(id, body.subarray(at, at + frameBytes), flags));
    }
    client.send(...frames);
    const statuses = await Promise.all(ids.map((id) => client.next(frameTypes.headers, id)));
    expect(statuses.some(({ payload }) => payload.includes('429'))).toBe(true);
    expect(client.frames.filter(({ type }) => type === frameTypes.rstStream)).toEqual([]);
  } finally {
    await client.destroy();
    await close();
  }
});
