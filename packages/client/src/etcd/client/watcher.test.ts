import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { create, toBinary } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import { describe, test } from 'vitest';
import { ProcessRef } from '../../time/process-ref.ts';
import type { EtcdConnection } from '../connection/etcd-connection.ts';
import { watchRange } from './watcher.ts';

const created = toBinary(
  etcdserverpb.WatchResponseSchema,
  create(etcdserverpb.WatchResponseSchema, { created: true, header: { revision: 7n } }),
);

/** As a call of the gRPC client: one that is cancelled ends with an error. */
class Call extends Duplex {
  constructor() {
    super({ objectMode: true, read: () => undefined, write: (_chunk, _encoding, done) => done() });
    this.push(created);
  }

  cancel(): void {
    this.destroy(new Error('Cancelled on client'));
  }
}

function connected(): { connection: EtcdConnection; calls: Call[]; abandoned: () => number } {
  const calls: Call[] = [];
  let abandoned = 0;
  const connection = {
    processRef: new ProcessRef({ unref: true }),
    isClosed: false,
    stream: async () => {
      const call = new Call();
      calls.push(call);
      return { call, endpoint: 'here', abandon: () => abandoned++ };
    },
    pause: async () => undefined,
  };
  return { connection: connection as unknown as EtcdConnection, calls, abandoned: () => abandoned };
}

describe('a watch over a connection', () => {
  test('says of a server that it failed when it did, and not when the watch was ended here', async () => {
    const { connection, calls, abandoned } = connected();
    const stop = new AbortController();
    let batches = 0;
    for await (const { revision } of watchRange(connection, 'key', { signal: stop.signal })) {
      assert.equal(revision, 7n);
      batches++;
      if (batches === 1) calls[0]!.destroy(new Error('the server went'));
      else stop.abort();
    }
    assert.deepEqual([batches, calls.length, abandoned()], [2, 2, 1]);
    assert.ok(calls.every(({ destroyed }) => destroyed));
  });

  test('nor when the loop over it was left', async () => {
    const { connection, calls, abandoned } = connected();
    for await (const _ of watchRange(connection, 'key', {})) break;
    assert.deepEqual([calls.length, calls[0]!.destroyed, abandoned()], [1, true, 0]);
  });
});
