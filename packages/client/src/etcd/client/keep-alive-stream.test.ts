import { Duplex } from 'node:stream';
import { create, toBinary } from '@bufbuild/protobuf';
import { etcdserverpb } from '@tenure/protocol';
import { describe, expect, test } from 'vitest';
import { ProcessRef } from '../../time/process-ref.ts';
import type { EtcdConnection } from '../connection/etcd-connection.ts';
import { isStaleToken } from '../connection/etcd-error-of.ts';
import { EtcdError } from '../connection/etcd-error.ts';
import { FakeClock } from '../../testing/fake-clock.ts';
import { KeepAliveStream } from './keep-alive-stream.ts';

const answerSchema = etcdserverpb.LeaseKeepAliveResponseSchema;

/** Like a call of the gRPC client: messages that arrived before the cancellation can still be read after it. */
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
    isStale: isStaleToken,
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
  test('repeats a renewal once with a new token on a new stream', async () => {
    const { renewals, calls } = connected();
    const refused = new EtcdError('denied', 'here', 'etcdserver: invalid auth token');
    const renewal = renewals.renew(1n);
    await turn();
    calls[0]?.destroy(refused);
    await turn();
    calls[1]?.answer(1n, 60);
    expect(await renewal).toBe(60_000);
    const again = renewals.renew(1n).catch((error: unknown) => error);
    for (const at of [1, 2]) {
      await turn();
      calls[at]?.destroy(refused);
      await turn();
    }
    expect(await again).toBe(refused);
    expect(calls.length).toBe(3);
  });

  test('is closed half a minute after the last renewal, but not while a renewal is pending', async () => {
    const clock = new FakeClock();
    const { renewals, calls } = connected(clock);
    const renewal = renewals.renew(1n);
    await clock.advance(29_000);
    await clock.advance(29_000);
    expect(calls[0]?.writableEnded).toBe(false);
    calls[0]?.answer(1n, 60);
    expect(await renewal).toBe(60_000);
    await clock.advance(29_000);
    expect(calls[0]?.writableEnded).toBe(true);
    renewals.close();
    expect(clock.timerCount).toBe(0);
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
    expect(await asked).toEqual([10_000, 20_000, 11_000]);
    expect(calls.length).toBe(1);
    renewals.close();
  });

  test('does not take an answer of an abandoned stream for one of the next stream', async () => {
    const { renewals, calls } = connected();
    const late = new AbortController();
    const first = renewals.renew(1n, late.signal).catch((error: unknown) => error);
    const beside = renewals.renew(2n).catch((error: unknown) => error);
    await turn();
    late.abort(new Error('too late'));
    expect(await first).toMatchObject({ message: 'too late' });
    expect(await beside).toBeInstanceOf(EtcdError);
    let answered: number | undefined;
    const second = renewals.renew(1n).then((ttlMs) => (answered = ttlMs));
    await turn();
    calls[0]!.answer(1n, 10);
    await turn();
    // The answer belongs to the first renewal, so it must not extend the lease from the second one on.
    expect(answered).toBe(undefined);
    calls[1]!.answer(1n, 30);
    expect(await second).toBe(30_000);
    renewals.close();
  });
});
