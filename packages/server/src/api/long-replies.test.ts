import { type Command, StateMachine } from '@tenure/core';
import { etcdserverpb } from '@tenure/protocol';
import { decodeMessage, encodeFramed, responseHeaderPrefix } from '@tenure/codec';
import { afterEach, expect, test, vi } from 'vitest';
import type { Lessor } from '../leases/lessor.ts';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import { CommandRules } from './command-rules.ts';
import { KvService } from './kv-service.ts';
import { LeaseService } from './lease-service.ts';
import { LongReplies } from './long-replies.ts';
import { QuotaGuard } from './quota-guard.ts';
import { type Caller, SlicedWork } from './sliced-work.ts';
import { type CallerConnection, type Reply, builtReply } from '@tenure/grpc-server';
import { testConnection } from '@tenure/test-support';
import { systemClock } from '../time/system-clock.ts';
import { systemRandom } from '../random/system-random.ts';

const leases = 5_000;
afterEach(() => void vi.restoreAllMocks());

function put(key: string): Command {
  return { kind: 'put', put: { key, value: '', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false } };
}

/** Services over a state of many leases and keys, whose long work continues when the test says so. */
class Bench {
  readonly state = new StateMachine();
  readonly lease: LeaseService;
  readonly kv: KvService;
  readonly work: SlicedWork;
  readonly #due: (() => void)[] = [];
  #index = 0;

  constructor() {
    this.work = new SlicedWork({ ...systemClock, soon: (next) => this.#due.push(next) });
    for (let id = 1; id <= leases; id += 1) this.grant(id);
    this.#apply(Array.from({ length: leases }, (_, at) => put(`k/${at}`)));
    const { state } = this;
    const replica: ReplicaAccess = {
      state,
      position: { index: 0, hash: '' },
      propose: () => Promise.reject(new Error('nothing is proposed here')),
      linearize: () => undefined,
    };
    const lessor = { deadlineMs: () => 5_000, remainingMs: () => 5_000 } as Partial<Lessor> as Lessor;
    const identity = { clusterId: 1n, memberId: 2n, headerPrefix: responseHeaderPrefix(1n, 2n) };
    const quota = new QuotaGuard(replica, 0, 2n);
    const rules = new CommandRules({
      state: () => state,
      quota,
      maxRequestBytes: 1024,
      maxTxnOps: 1,
      canAllApply: () => true,
    });
    const longReplies = new LongReplies(this.work);
    const renewals = { renew: () => 5_000, revision: () => state.currentRevision };
    const options = { random: systemRandom, replica, identity, rules, longReplies };
    this.lease = new LeaseService({ ...options, renewals, lessor: () => lessor, minLeaseTtlMs: 1 });
    this.kv = new KvService(options);
  }

  grant(id: number): void {
    this.#apply([{ kind: 'leaseGrant', id: BigInt(id), ttlMs: 5_000, label: '' }]);
  }

  list(caller: Caller, details = false): Promise<Reply> {
    const request = encodeFramed(etcdserverpb.LeaseLeasesRequestSchema, { details }).subarray(5);
    return Promise.resolve(this.lease.leases(request, caller));
  }

  putAndCompact(): void {
    this.#apply([put('k/0')]);
    this.#apply([{ kind: 'compact', revision: this.state.currentRevision }]);
  }

  /** One turn of the event loop. */
  turn(): boolean {
    const due = this.#due.splice(0);
    for (const callback of due) callback();
    return due.length > 0;
  }

  #apply(commands: readonly Command[]): void {
    this.#index += 1;
    this.state.apply({ index: this.#index, epoch: 0, timeMs: 0, commands });
  }
}

function callOn(connection: CallerConnection): Caller & { cancel: () => void } {
  const abort = new AbortController();
  return { connection, signal: abort.signal, cancel: () => abort.abort() };
}

async function listed(reply: Promise<Reply>): Promise<number> {
  const framed = await builtReply(await reply);
  return decodeMessage(etcdserverpb.LeaseLeasesResponseSchema, framed.subarray(5)).leases.length;
}

test('a long list of leases takes no memory before its turn, and is built once for all waiting callers', async () => {
  const bench = new Bench();
  const begun = vi.spyOn(bench.state, 'leases');
  const [one, other] = [testConnection(), testConnection()];
  const calls = Array.from({ length: 60 }, (_, at) => callOn(at < 40 ? one : other));
  const lists = calls.map((call) => bench.list(call));
  const detailed = bench.list(callOn(testConnection()), true);
  expect(begun).not.toHaveBeenCalled();
  // It is still listed: it was granted before the list began.
  bench.grant(leases + 1);
  while (bench.turn());
  for (const list of lists) expect(await listed(list)).toBe(leases + 1);
  expect(await listed(detailed)).toBe(leases + 1);
  expect(begun).toHaveBeenCalledTimes(2);
});

test('a caller that comes after a list has begun gets a newer one', async () => {
  const bench = new Bench();
  const begun = vi.spyOn(bench.state, 'leases');
  const first = bench.list(callOn(testConnection()));
  bench.turn();
  expect(begun).toHaveBeenCalledTimes(1);
  bench.grant(leases + 1);
  const second = bench.list(callOn(testConnection()));
  while (bench.turn());
  expect([await listed(first), await listed(second)]).toEqual([leases, leases + 1]);
});

test('a list that all callers have cancelled is not built', async () => {
  const bench = new Bench();
  const begun = vi.spyOn(bench.state, 'leases');
  const connection = testConnection();
  const calls = Array.from({ length: 60 }, () => callOn(connection));
  const ends = Promise.allSettled(calls.map((call) => bench.list(call)));
  for (const call of calls) call.cancel();
  expect(bench.work.size).toBe(0);
  expect((await ends).every(({ status }) => status === 'rejected')).toBe(true);
  while (bench.turn());
  expect(begun).not.toHaveBeenCalled();
});

test('a cancelled long range unpins the revision that it reads at', async () => {
  const bench = new Bench();
  const request = encodeFramed(etcdserverpb.RangeRequestSchema, {
    key: Buffer.from('k'),
    rangeEnd: Buffer.from('l'),
  }).subarray(5);
  const call = callOn(testConnection());
  const given = Promise.resolve(bench.kv.range(request, call)).catch((error: unknown) => error);
  bench.putAndCompact();
  expect(bench.state.isGarbageCollectionPaused).toBe(true);
  call.cancel();
  expect(await given).toMatchObject({ code: 1 });
  expect([bench.work.size, bench.state.isGarbageCollectionPaused]).toEqual([0, false]);
  const whole = Promise.resolve(bench.kv.range(request, callOn(testConnection())));
  while (bench.turn());
  const reply = decodeMessage(etcdserverpb.RangeResponseSchema, (await builtReply(await whole)).subarray(5));
  expect(reply.kvs.length).toBe(leases);
});
