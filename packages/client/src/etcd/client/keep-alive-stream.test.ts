import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { create, toBinary } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import { describe, test } from 'vitest';
import { ProcessRef } from '../../time/process-ref.ts';
import type { EtcdConnection } from '../connection/etcd-connection.ts';
import { EtcdError } from '../connection/etcd-error.ts';
import { FakeClock } from '../../testing/fake-clock.ts';
import { KeepAliveStream } from './keep-alive-stream.ts';

const answerSchema = etcdserverpb.LeaseKeepAliveResponseSchema;

/** As a call of the gRPC client: what has arrived before it was cancelled may still be read after that. */
class Call extends Duplex {
  sent = 0;

  constructor() {
    super({ objectMode: true, read: () => undefined });
  }

  override _write(_chunk: unknown, _encoding: unknown, done: () => void): void {
    this.sent++;
    done();
  }

  answer(id: bigint, seconds: number): void {
    const bytes = toBinary(answerSchema, create(answerSchema, { ID: id, TTL: BigInt(seconds) }));
    this.emit('data', Buffer.from(bytes));
  }

  cancel(): void {}
}

function connected(clock = new FakeClock()): { renewals: KeepAliveStream; calls: Call[] } {
  const calls: Call[] = [];
  const connection = {
    clock,
    processRef: new ProcessRef({ unref: true }),
    stream: async () => {
      const call = new Call();
      calls.push(call);
      return { call, endpoint: 'here', abandon: () => undefined };
    },
  };
  return { renewals: new KeepAliveStream(connection as unknown as EtcdConnection), calls };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the stream of renewals', () => {
  test('is closed half a minute after the last renewal, and not while one waits for its answer', async () => {
    const clock = new FakeClock();
    const { renewals, calls } = connected(clock);
    const renewal = renewals.renew(1n);
    await clock.advance(29_000);
    await clock.advance(29_000);
    assert.equal(calls[0]?.writableEnded, false);
    calls[0]?.answer(1n, 60);
    assert.equal(await renewal, 60_000);
    await clock.advance(29_000);
    assert.equal(calls[0]?.writableEnded, true);
    renewals.close();
    assert.equal(clock.timerCount, 0);
  });

  test('gives each renewal its own answer, in the order of sending', async () => {
    const { renewals, calls } = connected();
    const asked = Promise.all([renewals.renew(1n), renewals.renew(2n), renewals.renew(1n)]);
    await turn();
    for (const [id, seconds] of [
      [1n, 10],
      [2n, 20],
      [1n, 11],
    ] as const)
      calls[0]!.answer(id, seconds);
    assert.deepEqual(await asked, [10_000, 20_000, 11_000]);
    assert.equal(calls.length, 1);
    renewals.close();
  });

  test('takes no answer of a stream that was given up for that of the next one', async () => {
    const { renewals, calls } = connected();
    const late = new AbortController();
    const first = assert.rejects(renewals.renew(1n, late.signal), /^Error: too late$/);
    const beside = assert.rejects(renewals.renew(2n), EtcdError);
    await turn();
    late.abort(new Error('too late'));
    await Promise.all([first, beside]);
    let answered: number | undefined;
    const second = renewals.renew(1n).then((ttlMs) => (answered = ttlMs));
    await turn();
    calls[0]!.answer(1n, 10);
    await turn();
    // The lease lives from its first renewal on for all that is known, and not from the second.
    assert.equal(answered, undefined);
    calls[1]!.answer(1n, 30);
    assert.equal(await second, 30_000);
    renewals.close();
  });
});
