import { readFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { encodeRangeRequest, frameHeadroomBytes } from '@tenure/codec';
import { framed } from '../conformance/client/http2-call.ts';
import { TestedServer } from './robustness/tested-server.ts';

const isSoak = inject('effort') === 'soak';
const mebibyte = 1024 * 1024;
const valueBytes = 1_400_000;
const keys = 20;
/** The limit of all replies, plus the rest of a process's memory: uncollected garbage, buffers. */
const maxGrowthMiB = 512 + 300;
const sampleMs = 20;

let server: TestedServer;
beforeAll(async () => {
  server = await TestedServer.start();
});
afterAll(() => server?.stop());

function rssMiB(): number {
  const status = readFileSync(`/proc/${server.process.pid}/status`, 'utf8');
  return (Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024) / mebibyte;
}

interface Unread {
  readonly connections: number;
  readonly requests: number;
  readonly headers: Record<string, string>;
  readonly body?: Buffer;
}

/**
 * Makes requests on connections with a flow-control window of zero; returns the largest growth of the server's memory.
 */
async function askAndNeverRead({ connections, requests, headers, body }: Unread, minReplies: number): Promise<number> {
  let replies = 0;
  const sessions = Array.from({ length: connections }, () => {
    const session = connect(`http://${server.address}`, { settings: { initialWindowSize: 0 } });
    session.on('error', () => {});
    for (let request = 0; request < requests; request += 1) {
      const stream = session.request(headers, { endStream: body === undefined });
      stream.on('error', () => {});
      stream.on('response', () => (replies += 1));
      if (body !== undefined) stream.end(body);
    }
    return session;
  });
  const before = rssMiB();
  let peak = before;
  const sample = async (): Promise<void> => {
    peak = Math.max(peak, rssMiB());
    await delay(sampleMs);
  };
  while (replies < minReplies) await sample();
  // Other clients are served over many turns of the server's event loop.
  for (let put = 0; put < 50; put += 1) {
    await server.kv.put({ key: Buffer.from('other'), value: Buffer.from(String(put)) });
    await sample();
  }
  for (const session of sessions) session.destroy();
  console.log(`${replies} replies; memory ${before.toFixed(0)} MiB before, ${peak.toFixed(0)} MiB at most`);
  return peak - before;
}

describe('unread replies', { timeout: 180_000 }, () => {
  test('of full ranges stay within the limit of memory', async () => {
    const value = Buffer.alloc(valueBytes, 'v');
    for (let key = 0; key < keys; key += 1) await server.kv.put({ key: Buffer.from(`large/${key}`), value });
    const range = { key: 'large/', rangeEnd: 'large0', limit: 0, revision: 0, sortOrder: 0, sortTarget: 0 };
    const filters = { minModRevision: 0, maxModRevision: 0, minCreateRevision: 0, maxCreateRevision: 0 };
    const flags = { serializable: false, keysOnly: false, countOnly: false };
    const request = encodeRangeRequest({ ...range, ...filters, ...flags }).subarray(frameHeadroomBytes);
    const headers = {
      ':method': 'POST',
      ':path': '/etcdserverpb.KV/Range',
      'content-type': 'application/grpc',
      te: 'trailers',
    };
    const unread = { connections: isSoak ? 60 : 30, requests: 10, headers, body: framed(request) };
    // The number of requests whose replies fit into the limit.
    expect(await askAndNeverRead(unread, 15)).toBeLessThan(maxGrowthMiB);
  });
});
