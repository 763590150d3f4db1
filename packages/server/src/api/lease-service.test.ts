import { StateMachine } from '@tenure/core';
import { etcdserverpb } from '@tenure/protocol';
import { decodeMessage, encodeFramed, responseHeaderPrefix } from '@tenure/codec';
import { expect, test } from 'vitest';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import { CommandRules } from './command-rules.ts';
import { LeaseService } from './lease-service.ts';
import { LongReplies } from './long-replies.ts';
import { QuotaGuard } from './quota-guard.ts';
import type { GrpcStatus } from '@tenure/grpc-server';
import type { DuplexCall } from '../transport/transport.ts';
import { testConnection } from '@tenure/test-support';
import { systemClock } from '../time/system-clock.ts';
import { systemRandom } from '../random/system-random.ts';
import { SlicedWork } from './sliced-work.ts';

/** A stream of renewals with leader queries that wait until the test answers them. */
class RenewalStream {
  readonly answers: number[] = [];
  readonly asked: ((ttlMs: number) => void)[] = [];
  status: GrpcStatus | undefined;
  isPaused = false;
  readonly #call: DuplexCall;

  constructor() {
    this.#call = {
      path: '/etcdserverpb.Lease/LeaseKeepAlive',
      metadata: {},
      deadlineMs: Infinity,
      signal: new AbortController().signal,
      connection: testConnection(),
      bufferedBytes: 0,
      maxReceiveBytes: Infinity,
      onMessage: () => {},
      onHalfClose: () => {},
      onDrain: () => {},
      onClose: () => {},
      pause: () => (this.isPaused = true),
      resume: () => (this.isPaused = false),
      trustPeer: () => {},
      end: (status) => (this.status = status),
      send: (framed) => {
        const reply = decodeMessage(etcdserverpb.LeaseKeepAliveResponseSchema, framed.subarray(5));
        this.answers.push(Number(reply.TTLMs));
        return true;
      },
    };
    const state = new StateMachine();
    const replica: ReplicaAccess = {
      state,
      position: { index: 0, hash: '' },
      propose: () => Promise.reject(new Error('nothing is proposed here')),
      linearize: () => undefined,
    };
    const service = new LeaseService({
      random: systemRandom,
      replica,
      renewals: {
        renew: () => new Promise((resolve) => this.asked.push(resolve)),
        revision: () => state.currentRevision,
      },
      lessor: () => {
        throw new Error('this server does not lead');
      },
      identity: { clusterId: 1n, memberId: 2n, headerPrefix: responseHeaderPrefix(1n, 2n) },
      rules: new CommandRules({
        state: () => state,
        quota: new QuotaGuard(replica, 0, 2n),
        maxRequestBytes: 1024,
        maxTxnOps: 1,
        canAllApply: () => true,
      }),
      longReplies: new LongReplies(new SlicedWork(systemClock)),
      minLeaseTtlMs: 1,
    });
    service.keepAlive(this.#call);
  }

  renew(id: bigint): void {
    this.#call.onMessage(encodeFramed(etcdserverpb.LeaseKeepAliveRequestSchema, { ID: id }).subarray(5));
  }

  halfClose(): void {
    this.#call.onHalfClose();
  }

  async answer(ttlMs: number): Promise<void> {
    this.asked.shift()?.(ttlMs);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test('a renewal does not share the result of an earlier query on its stream, and later ones share one', async () => {
  const stream = new RenewalStream();
  stream.renew(7n);
  stream.renew(7n);
  stream.renew(7n);
  expect(stream.asked.length).toBe(1);
  stream.halfClose();
  await stream.answer(5_000);
  expect(stream.answers).toEqual([5_000]);
  // The lease was revoked in between, and that was acknowledged before the later two were sent.
  expect(stream.asked.length).toBe(1);
  expect(stream.status).toBeUndefined();
  await stream.answer(0);
  expect(stream.answers).toEqual([5_000, 0, 0]);
  expect(stream.status?.code).toBe(0);
});

test('a stream with waiting requests is paused, for many leases or for one', async () => {
  for (const leases of [1n, 1_000_000n]) {
    const stream = new RenewalStream();
    let requests = 0n;
    while (!stream.isPaused && requests < 1_000_000n) stream.renew((requests += 1n) % leases);
    expect(requests).toBe(10_000n);
    if (leases > 1n) continue;
    await stream.answer(5_000);
    expect([stream.answers.length, stream.isPaused]).toEqual([1, false]);
    await stream.answer(5_000);
    expect([stream.answers.length, stream.isPaused]).toEqual([10_000, false]);
  }
});
