import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { startDynalite } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { Claim, LeaseBackend } from '../backend/lease-backend.ts';
import { createLeaseManager } from '../lease-manager.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { backendConformance } from '../testing/index.ts';
import type { DynamoClient } from './dynamo-client.ts';
import { dynamodbBackend } from './dynamodb-backend.ts';
import type { DynamodbBackend } from './dynamodb-backend.ts';

const { signal } = new AbortController();

describe('dynamodbBackend', () => {
  backendConformance(
    async () => {
      const { client, stop } = await startDynalite();
      const open = (): DynamodbBackend => dynamodbBackend({ client, table: 'leases', pollIntervalMs: 100 });
      await open().migrate();
      return { open, dispose: stop };
    },
    // All rounds are in `tests/library/backend-contracts.long.test.ts`: each call takes the emulator milliseconds.
    { framework: { describe, test, afterAll }, seed: inject('seed'), rounds: 'few' },
  );
});

describe('leases in DynamoDB', () => {
  let client: DynamoDB;
  let stop: () => Promise<void>;
  let names = 0;

  beforeAll(async () => {
    ({ client, stop } = await startDynalite());
    await Promise.all([1, 2, 3].map(() => backend().migrate()));
  });
  afterAll(() => stop());

  const backend = (clock = new FakeClock()): DynamodbBackend => dynamodbBackend({ client, table: 'leases', clock });

  function claim(name: string, fields: Partial<Claim> = {}): Claim {
    const id = crypto.randomUUID();
    return { name, id, holder: 'me', mode: 'exclusive', permits: 1, ttlMs: 10_000, data: '', ...fields };
  }

  const nextName = (): string => `lease/${++names}`;
  const enter = (at: LeaseBackend, asked: Claim): ReturnType<LeaseBackend['enter']> =>
    at.enter(asked, { onlyIfHolds: false, signal });

  test('an observer that was paused, or reads for the first time, steals nothing', async () => {
    const name = nextName();
    const mine = claim(name);
    await enter(backend(), mine);
    const clock = new FakeClock();
    const observer = backend(clock);
    expect((await observer.list(name, signal)).length).toBe(1);
    await clock.advance(9999);
    expect((await observer.list(name, signal)).map(({ expiresInMs }) => expiresInMs)).toEqual([1]);
    // Another observer, whose clock is far ahead, has only just started to observe.
    expect((await backend(new FakeClock()).list(name, signal)).length).toBe(1);
    await clock.advance(1);
    expect(await observer.list(name, signal)).toEqual([]);
    const sequence = (await enter(observer, claim(name))).sequence;
    expect(sequence).toBe(2n);
  });

  test('a renewal at the last moment keeps the entry, and an expired entry stays expired', async () => {
    const name = nextName();
    const holder = backend();
    const mine = claim(name, { ttlMs: 1000 });
    const { sequence } = await enter(holder, mine);
    const key = { name, id: mine.id, sequence: sequence! };
    const clock = new FakeClock();
    const observer = backend(clock);
    await observer.list(name, signal);
    await clock.advance(999);
    expect(await holder.renew([{ ...key, ttlMs: 1000 }], signal)).toEqual([true]);
    await clock.advance(1);
    expect((await observer.list(name, signal)).length).toBe(1);
    await clock.advance(1000);
    expect((await observer.list(name, signal)).length).toBe(0);
    expect(await holder.renew([{ ...key, ttlMs: 1000 }], signal)).toEqual([false]);
    expect(await holder.leave(key, signal)).toBe(false);
  });

  test('an entry that is found expired and is renewed before its removal stays', async () => {
    const name = nextName();
    const holder = backend();
    const mine = claim(name, { ttlMs: 1000 });
    const { sequence } = await enter(holder, mine);
    const renewal = { name, id: mine.id, sequence: sequence!, ttlMs: 1000 };
    let afterQuery = async (): Promise<unknown> => undefined;
    const slow: DynamoClient = {
      query: async (input, options) => {
        const page = await (client as DynamoClient).query(input, options);
        await afterQuery();
        return page;
      },
      updateItem: (input, options) => (client as DynamoClient).updateItem(input, options),
      deleteItem: (input, options) => (client as DynamoClient).deleteItem(input, options),
      createTable: (input, options) => (client as DynamoClient).createTable(input, options),
      describeTable: (input, options) => (client as DynamoClient).describeTable(input, options),
    };
    const clock = new FakeClock();
    const observer = dynamodbBackend({ client: slow, table: 'leases', clock });
    await observer.list(name, signal);
    await clock.advance(1000);
    afterQuery = () => holder.renew([renewal], signal);
    expect((await observer.list(name, signal)).map(({ id }) => id)).toStrictEqual([mine.id]);
    expect(await holder.renew([renewal], signal)).toEqual([true]);
  });

  test('members have items of their own, which DynamoDB may delete by their TTL', async () => {
    const name = nextName();
    const member = claim(name, { mode: 'member', data: 'here' });
    const at = backend();
    const { sequence, entries } = await enter(at, member);
    expect([sequence, entries.length]).toEqual([1n, 1]);
    const keptSeconds = async ({ id }: Claim): Promise<number> => {
      const row = { name: { S: name }, row: { S: `member#${id}` } };
      const { Item } = await client.getItem({ TableName: 'leases', Key: row });
      return Number(Item?.['expires']?.N) - Date.now() / 1000;
    };
    const day = 24 * 60 * 60;
    const seconds = await keptSeconds(member);
    expect(seconds).toBeGreaterThan(day);
    expect(seconds).toBeLessThan(day + 100);
    // Never before the entry expires, however long its TTL is.
    const patient = claim(name, { mode: 'member', ttlMs: 5 * day * 1_000 });
    const entered = await enter(at, patient);
    expect(await keptSeconds(patient)).toBeGreaterThan(5 * day);
    const renewal = { name, id: patient.id, sequence: entered.sequence!, ttlMs: 7 * day * 1_000 };
    expect(await at.renew([renewal], signal)).toEqual([true]);
    expect(await keptSeconds(patient)).toBeGreaterThan(7 * day);
    expect(await at.update({ name, id: member.id, sequence: 1n }, 'there', signal)).toBe(true);
    expect((await at.list(name, signal))[0]?.data).toBe('there');
    expect(await at.leave({ name, id: member.id, sequence: 0n }, signal)).toBe(true);
  });

  test('twenty concurrent entries have distinct sequence numbers', async () => {
    const name = nextName();
    const at = backend();
    const entered = await Promise.all(Array.from({ length: 20 }, () => enter(at, claim(name))));
    const sequences = entered.map(({ sequence }) => Number(sequence)).toSorted((one, other) => one - other);
    expect(sequences).toStrictEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  });

  test('reports what to do when the table is missing or the server does not answer', async () => {
    const missing = dynamodbBackend({ client, table: 'missing' });
    await expect(missing.list('a', signal)).rejects.toMatchObject({
      backendCode: 'not-migrated',
      message: expect.stringMatching(/call migrate\(\) once/),
    });
    const credentials = { accessKeyId: 'any', secretAccessKey: 'any' };
    const nowhere = new DynamoDB({ endpoint: 'http://127.0.0.1:1', region: 'local', credentials, maxAttempts: 1 });
    const gone = dynamodbBackend({ client: nowhere, table: 'leases' });
    await expect(gone.list('a', signal)).rejects.toMatchObject({ name: 'BackendError', backendCode: 'unavailable' });
    nowhere.destroy();
    const closed = backend();
    await closed.close();
    await expect(closed.list('a', signal)).rejects.toMatchObject({ backendCode: 'closed' });
  });

  /** An error as the SDK throws it, with its number of attempts. */
  const sdkError = (name: string, attempts: number): Error => {
    return Object.assign(new Error(`it says ${name}`), { name, $metadata: { attempts } });
  };
  const failing = (method: keyof DynamoClient, error: Error): DynamoClient => {
    return new Proxy<DynamoClient>(client, {
      get: (target, key) => {
        if (key === method) return () => Promise.reject(error);
        const found = Reflect.get(target, key) as unknown;
        return typeof found === 'function' ? (found.bind(target) as unknown) : found;
      },
    });
  };

  test('does not report a refusal when the entry may exist, so that the entry is removed', async () => {
    const name = `denied-${nextName()}`;
    const denied = failing('query', sdkError('AccessDeniedException', 1));
    const half = dynamodbBackend({ client: denied, table: 'leases', clock: new FakeClock() });
    const first = claim(name);
    await enter(backend(), first);
    await backend().leave({ ...first, sequence: 0n }, signal);
    for (const mode of ['exclusive', 'member'] as const) {
      const asked = claim(name, { mode });
      await expect(enter(half, asked)).rejects.toMatchObject({
        backendCode: 'unavailable',
        message: expect.stringMatching(/it may have been entered/),
      });
      expect((await backend().list(name, signal)).map(({ id }) => id)).toStrictEqual([asked.id]);
      await backend().leave({ ...asked, sequence: 0n }, signal);
    }
    const leases = createLeaseManager({ backend: half, clock: new FakeClock() });
    await expect(leases.acquire('denied')).rejects.toMatchObject({ backendCode: 'unavailable' });
    await leases[Symbol.asyncDispose]();
    expect(await backend().list('lease/denied', signal)).toEqual([]);
  });

  test('the error of a retried request says nothing about the attempt before it', async () => {
    for (const [attempts, backendCode] of [
      [1, 'misconfigured'],
      [2, 'unavailable'],
    ] as const) {
      const expired = failing('updateItem', sdkError('ExpiredTokenException', attempts));
      const half = dynamodbBackend({ client: expired, table: 'leases', clock: new FakeClock() });
      await expect(enter(half, claim(nextName()))).rejects.toMatchObject({ backendCode });
    }
  });

  test('a refused call has changed nothing', async () => {
    const name = nextName();
    const before = await enter(backend(), claim(name));
    for (const wrong of [{ name: 'x'.repeat(3_000) }, { data: 'x'.repeat(450_000) }]) {
      await expect(enter(backend(), claim(name, wrong))).rejects.toMatchObject({ backendCode: 'refused' });
    }
    const { sequence, entries } = await enter(backend(), claim(name));
    expect([sequence, entries.length]).toStrictEqual([(before.sequence ?? 0n) + 1n, 2]);
  });
});
