import { DynamoDB } from '@aws-sdk/client-dynamodb';
import assert from 'node:assert/strict';
import { startDynalite } from '@tenure/test-support';
import { afterAll, beforeAll, describe, inject, test } from 'vitest';
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

  test('an observer that wakes up late, or looks for the first time, steals nothing', async () => {
    const name = nextName();
    const mine = claim(name);
    await enter(backend(), mine);
    const clock = new FakeClock();
    const observer = backend(clock);
    assert.equal((await observer.list(name, signal)).length, 1);
    await clock.advance(9999);
    assert.deepEqual(
      (await observer.list(name, signal)).map(({ expiresInMs }) => expiresInMs),
      [1],
    );
    // Another observer, whose clock is far ahead, has only begun to look.
    assert.equal((await backend(new FakeClock()).list(name, signal)).length, 1);
    await clock.advance(1);
    assert.deepEqual(await observer.list(name, signal), []);
    const ticket = (await enter(observer, claim(name))).ticket;
    assert.equal(ticket, 2n);
  });

  test('a renewal in the last moment saves the entry, and a dead one stays dead', async () => {
    const name = nextName();
    const holder = backend();
    const mine = claim(name, { ttlMs: 1000 });
    const { ticket } = await enter(holder, mine);
    const key = { name, id: mine.id, ticket: ticket! };
    const clock = new FakeClock();
    const observer = backend(clock);
    await observer.list(name, signal);
    await clock.advance(999);
    assert.deepEqual(await holder.renew([{ ...key, ttlMs: 1000 }], signal), [true]);
    await clock.advance(1);
    assert.equal((await observer.list(name, signal)).length, 1);
    await clock.advance(1000);
    assert.equal((await observer.list(name, signal)).length, 0);
    assert.deepEqual(await holder.renew([{ ...key, ttlMs: 1000 }], signal), [false]);
    assert.equal(await holder.leave(key, signal), false);
  });

  test('who is found dead and is renewed before it can be removed stays', async () => {
    const name = nextName();
    const holder = backend();
    const mine = claim(name, { ttlMs: 1000 });
    const { ticket } = await enter(holder, mine);
    const renewal = { name, id: mine.id, ticket: ticket!, ttlMs: 1000 };
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
    assert.deepEqual(
      (await observer.list(name, signal)).map(({ id }) => id),
      [mine.id],
    );
    assert.deepEqual(await holder.renew([renewal], signal), [true]);
  });

  test('members have items of their own, which DynamoDB may clear away by their TTL', async () => {
    const name = nextName();
    const member = claim(name, { mode: 'member', data: 'here' });
    const at = backend();
    const { ticket, entries } = await enter(at, member);
    assert.deepEqual([ticket, entries.length], [1n, 1]);
    const keptSeconds = async ({ id }: Claim): Promise<number> => {
      const row = { name: { S: name }, row: { S: `member#${id}` } };
      const { Item } = await client.getItem({ TableName: 'leases', Key: row });
      return Number(Item?.['expires']?.N) - Date.now() / 1000;
    };
    const day = 24 * 60 * 60;
    const seconds = await keptSeconds(member);
    assert.ok(seconds > day && seconds < day + 100);
    // Never before its life is over, however long that is.
    const patient = claim(name, { mode: 'member', ttlMs: 5 * day * 1_000 });
    const entered = await enter(at, patient);
    assert.ok((await keptSeconds(patient)) > 5 * day);
    const renewal = { name, id: patient.id, ticket: entered.ticket!, ttlMs: 7 * day * 1_000 };
    assert.deepEqual(await at.renew([renewal], signal), [true]);
    assert.ok((await keptSeconds(patient)) > 7 * day);
    assert.equal(await at.update({ name, id: member.id, ticket: 1n }, 'there', signal), true);
    assert.equal((await at.list(name, signal))[0]?.data, 'there');
    assert.equal(await at.leave({ name, id: member.id, ticket: 0n }, signal), true);
  });

  test('twenty who enter at once have tickets of their own', async () => {
    const name = nextName();
    const at = backend();
    const entered = await Promise.all(Array.from({ length: 20 }, () => enter(at, claim(name))));
    const tickets = entered.map(({ ticket }) => Number(ticket)).toSorted((one, other) => one - other);
    assert.deepEqual(
      tickets,
      Array.from({ length: 20 }, (_, index) => index + 1),
    );
  });

  test('says what to do when the table is missing or there is no answer', async () => {
    const missing = dynamodbBackend({ client, table: 'missing' });
    await assert.rejects(missing.list('a', signal), { backendCode: 'not-migrated', message: /call migrate\(\) once/ });
    const credentials = { accessKeyId: 'any', secretAccessKey: 'any' };
    const nowhere = new DynamoDB({ endpoint: 'http://127.0.0.1:1', region: 'local', credentials, maxAttempts: 1 });
    const gone = dynamodbBackend({ client: nowhere, table: 'leases' });
    await assert.rejects(gone.list('a', signal), { name: 'BackendError', backendCode: 'unavailable' });
    nowhere.destroy();
    const closed = backend();
    await closed.close();
    await assert.rejects(closed.list('a', signal), { backendCode: 'closed' });
  });

  /** As the SDK throws it, after so many requests. */
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

  test('does not say that nothing was done when an entry may stand, so that it is taken back', async () => {
    const name = `denied-${nextName()}`;
    const denied = failing('query', sdkError('AccessDeniedException', 1));
    const half = dynamodbBackend({ client: denied, table: 'leases', clock: new FakeClock() });
    const first = claim(name);
    await enter(backend(), first);
    await backend().leave({ ...first, ticket: 0n }, signal);
    for (const mode of ['exclusive', 'member'] as const) {
      const asked = claim(name, { mode });
      await assert.rejects(enter(half, asked), { backendCode: 'unavailable', message: /it may have been entered/ });
      assert.deepEqual(
        (await backend().list(name, signal)).map(({ id }) => id),
        [asked.id],
      );
      await backend().leave({ ...asked, ticket: 0n }, signal);
    }
    const leases = createLeaseManager({ backend: half, clock: new FakeClock() });
    await assert.rejects(leases.acquire('denied'), { backendCode: 'unavailable' });
    await leases[Symbol.asyncDispose]();
    assert.deepEqual(await backend().list('lease/denied', signal), []);
  });

  test('an error of a request that was repeated says nothing of the one before it', async () => {
    for (const [attempts, backendCode] of [
      [1, 'misconfigured'],
      [2, 'unavailable'],
    ] as const) {
      const expired = failing('updateItem', sdkError('ExpiredTokenException', attempts));
      const half = dynamodbBackend({ client: expired, table: 'leases', clock: new FakeClock() });
      await assert.rejects(enter(half, claim(nextName())), { backendCode });
    }
  });

  test('what it refuses was not done', async () => {
    const name = nextName();
    const before = await enter(backend(), claim(name));
    for (const wrong of [{ name: 'x'.repeat(3_000) }, { data: 'x'.repeat(450_000) }]) {
      await assert.rejects(enter(backend(), claim(name, wrong)), { backendCode: 'refused' });
    }
    const { ticket, entries } = await enter(backend(), claim(name));
    assert.deepEqual([ticket, entries.length], [(before.ticket ?? 0n) + 1n, 2]);
  });
});
