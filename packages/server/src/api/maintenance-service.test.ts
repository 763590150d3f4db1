import { type Command, StateMachine } from '@tenure/core';
import { etcdserverpb } from '@tenure/protocol';
import { decodeMessage, frameHeadroomBytes, responseHeaderPrefix } from '@tenure/codec';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { MaintenanceService } from './maintenance-service.ts';
import { deferred, testConnection } from '@tenure/test-support';
import type { Call } from '../transport/transport.ts';
import { systemClock } from '../time/system-clock.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

function createService() {
  const state = new StateMachine();
  const service = new MaintenanceService({
    clock: systemClock,
    replica: {
      state,
      position: { index: 0, hash: '' },
      propose: () => Promise.reject(new Error('nothing is proposed here')),
      linearize: () => undefined,
    },
    identity: { clusterId: 1n, memberId: 2n, headerPrefix: responseHeaderPrefix(1n, 2n) },
    rules: { refusal: () => undefined },
    quotaBytes: 0,
    leaderId: () => 0n,
    logIndex: () => 0,
    problem: () => undefined,
  });
  return { state, service };
}

/** The error of a refusal. Called at once, so that the refusal may come before the test waits for it. */
function errorOf(answer: Promise<unknown>): Promise<unknown> {
  return answer.then(
    () => undefined,
    (error: unknown) => error,
  );
}

/** A call on a connection of its own. */
function openCall(): Pick<Call, 'signal' | 'connection'> {
  return { signal: new AbortController().signal, connection: testConnection() };
}

function apply(state: StateMachine, ...commands: Command[]): void {
  state.apply({ index: state.appliedIndex + 1, epoch: state.epoch, timeMs: 0, commands });
}

function put(key: string): Command {
  return { kind: 'put', put: { key, value: '', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false } };
}

/** From here on a snapshot or hash that began before pauses garbage collection, until it ends. */
function compactAll(state: StateMachine): void {
  apply(state, put('compacted'), { kind: 'compact', revision: state.currentRevision + 1 });
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a hash', () => {
  test('has the header of its state, regardless of entries applied meanwhile', async () => {
    const { state, service } = createService();
    state.apply({
      index: 1,
      epoch: 1,
      timeMs: 0,
      commands: [{ kind: 'claim', epoch: 1, leader: '', leaderLeaseMs: 0 }],
    });
    apply(state, put('a'));
    const steps = state.snapshot();
    for (const chunk of steps) void chunk;
    const answer = service.hash(openCall());
    apply(state, put('b'));
    const { header, hash } = decodeMessage(
      etcdserverpb.HashResponseSchema,
      (await answer).subarray(frameHeadroomBytes),
    );
    expect(hash).toBe(steps.check);
    expect([header?.revision, header?.raftTerm]).toEqual([2n, 1n]);
  });

  test('ends with its call', async () => {
    const { state, service } = createService();
    const client = new AbortController();
    const left = errorOf(service.hash(client));
    compactAll(state);
    expect(state.isGarbageCollectionPaused).toBe(true);
    client.abort();
    expect(await left).toMatchObject({ code: 1 });
    await turn();
    expect(state.isGarbageCollectionPaused).toBe(false);
  });
});

describe('a snapshot for a client', () => {
  test('stops being written when its client has disconnected', async () => {
    const { state, service } = createService();
    for (let key = 0; key < 20_000; key += 1) apply(state, put(`key ${key}`));
    const begun = vi.spyOn(state, 'snapshot');
    const client = new AbortController();
    const left = errorOf(service.snapshot({ ...openCall(), signal: client.signal }, () => Promise.resolve()));
    const steps = vi.spyOn(begun.mock.results[0]!.value, 'next');
    compactAll(state);
    client.abort();
    expect(await left).toMatchObject({ code: 1 });
    expect(steps.mock.calls.length).toBeLessThan(3);
    expect(state.isGarbageCollectionPaused).toBe(false);
  });

  test('that does not fit on the disk is released: compacted versions are freed', async () => {
    const { state, service } = createService();
    vi.stubEnv('TMPDIR', '/there/is/no/such/folder');
    await expect(service.snapshot(openCall(), () => Promise.resolve())).rejects.toThrow('ENOENT');
    compactAll(state);
    expect(state.isGarbageCollectionPaused).toBe(false);
  });

  test('is refused when many are in progress, and accepted when one of these has ended', async () => {
    const { service } = createService();
    const reading = deferred();
    const underWay = Array.from({ length: 8 }, () => service.snapshot(openCall(), () => reading.promise));
    await expect(service.snapshot(openCall(), () => Promise.resolve())).rejects.toMatchObject({ code: 8 });
    reading.resolve();
    await Promise.all(underWay);
    const sent: Buffer[] = [];
    await service.snapshot(openCall(), async (framed) => void sent.push(framed));
    expect(sent.length).toBeGreaterThan(0);
  });

  test('is refused for a connection that has two in progress, and for no other', async () => {
    const { service } = createService();
    const reading = deferred();
    const greedy = openCall();
    const underWay = [greedy, greedy].map((call) => service.snapshot(call, () => reading.promise));
    await expect(service.snapshot(greedy, () => Promise.resolve())).rejects.toMatchObject({ code: 8 });
    await service.snapshot(openCall(), () => Promise.resolve());
    reading.resolve();
    await Promise.all(underWay);
    await service.snapshot(greedy, () => Promise.resolve());
  });
});

describe('Status', () => {
  // etcdctl 3.6 divides by dbSize.
  test('reports a size also for an empty store', () => {
    const { state, service } = createService();
    const read = () => decodeMessage(etcdserverpb.StatusResponseSchema, service.status().subarray(frameHeadroomBytes));
    expect(state.sizeBytes).toBe(0);
    expect(read()).toMatchObject({ dbSize: 1n, dbSizeInUse: 1n });
    apply(state, put('a'));
    expect(read()).toMatchObject({ dbSize: BigInt(state.sizeBytes), dbSizeInUse: BigInt(state.sizeInUseBytes) });
    expect(state.sizeInUseBytes).toBeGreaterThan(1);
  });
});
