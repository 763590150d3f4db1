import { expect } from 'vitest';
import { etcdserverpb } from '@tenure/protocol';
import { Code, refusalOf } from '../client/refusal.ts';
import { bytes } from './bytes.ts';
import type { CaseGroup } from './case.ts';
import { refused } from './refused.ts';
import { op, target } from './txn-parts.ts';

const mebibyte = 1024 * 1024;
const small = bytes('v'.repeat(4_000));
const large = bytes('v'.repeat(20_000));

export const defaultLimits: CaseGroup = {
  name: 'default limits',
  cases: [
    {
      name: 'accepts a value of a MiB and a half, less the rest of the request',
      run: async (t) => {
        const value = bytes('v'.repeat(1.5 * mebibyte - 1_000));
        await t.kv.put({ key: t.key('a'), value });
        const { kvs } = await t.kv.range({ key: t.key('a') });
        expect(Buffer.from(kvs[0]?.value ?? []).equals(Buffer.from(value))).toBe(true);
      },
    },
    {
      name: 'refuses a larger request',
      run: async (t) => {
        const before = await t.revision();
        const value = bytes('v'.repeat(1.5 * mebibyte + 1));
        expect(await refusalOf(t.kv.put({ key: t.key('a'), value }))).toEqual(refused.requestTooLarge);
        expect(await t.revision()).toBe(before);
      },
    },
    {
      name: 'does not receive a message of more than two MiB',
      run: async (t) => {
        const value = bytes('v'.repeat(2 * mebibyte));
        const { code, details } = await refusalOf(t.kv.put({ key: t.key('a'), value }));
        expect(code).toBe(Code.resourceExhausted);
        expect(details).toMatch(/larger than max \(\d+ vs\. 2097152\)/);
        expect(await t.get('a')).toBeUndefined();
      },
    },
    {
      name: 'answers more than it would receive',
      run: async (t) => {
        const value = bytes('v'.repeat(mebibyte));
        for (let index = 0; index < 5; index += 1) await t.kv.put({ key: t.key(`${index}`), value });
        const { kvs } = await t.kv.range(t.all());
        expect(kvs.map((kv) => kv.value.length)).toEqual(Array.from({ length: 5 }, () => mebibyte));
      },
    },
    {
      name: 'accepts long keys',
      run: async (t) => {
        const name = 'k'.repeat(100_000);
        await t.put(name, '1');
        expect(t.pairs((await t.kv.range(t.all('kkk'))).kvs)).toEqual([`${name}=1`]);
      },
    },
  ],
};

const tinyBytes = 24;

/** Its group has only cases of Tenure: an etcd with this limit cannot even publish its own member. */
export const tinyLimit: CaseGroup = {
  name: 'a limit of some bytes',
  server: { maxRequestBytes: tinyBytes },
  cases: [
    {
      name: 'refuses large requests, and ends leases, compacts and raises alarms as ever',
      tenureOnly: 'etcd does not start to serve with a limit below the size of its own messages',
      run: async (t) => {
        const value = bytes('v'.repeat(tinyBytes));
        expect(await refusalOf(t.kv.put({ key: t.key('a'), value }))).toEqual(refused.requestTooLarge);
        const { ID } = await t.lease.leaseGrant({ TTL: 1n, ID: 7n });
        const revision = await t.put('a', '', ID);
        await t.until('the lease has taken its key', async () => (await t.get('a')) === undefined);
        expect(await t.revision()).toBe(revision + 1n);
        expect(await t.ttlOf(ID)).toBe(-1n);
        await t.kv.compact({ revision });
        expect((await t.maintenance.hashKV({})).compactRevision).toBe(revision);
        const alarm = { memberID: 2n ** 64n - 1n, alarm: etcdserverpb.AlarmType.NOSPACE };
        const { ACTIVATE, DEACTIVATE } = etcdserverpb.AlarmRequest_AlarmAction;
        expect((await t.maintenance.alarm({ action: ACTIVATE, ...alarm })).alarms).toMatchObject([alarm]);
        expect((await t.maintenance.alarm({ action: DEACTIVATE, ...alarm })).alarms).toMatchObject([alarm]);
      },
    },
  ],
};

export const chosenLimits: CaseGroup = {
  name: 'limits that were chosen at the start',
  server: { maxRequestBytes: 10_000, maxTxnOps: 3 },
  cases: [
    {
      name: 'refuses writes beyond --max-request-bytes, of any kind',
      run: async (t) => {
        await t.kv.put({ key: t.key('a'), value: small });
        const before = await t.revision();
        const three = [1, 2, 3].map((n) => op.put({ key: t.key(`${n}`), value: small }));
        const put = op.put({ key: t.key('b') });
        const calls = [
          () => t.kv.put({ key: t.key('a'), value: large }),
          () => t.kv.put({ key: large, value: small }),
          () => t.kv.txn({ success: three }),
          () => t.kv.txn({ success: [put], failure: [op.put({ key: t.key('a'), value: large })] }),
          () => t.kv.txn({ success: [put], compare: [{ key: t.key('a'), ...target.value(large) }] }),
          () => t.kv.deleteRange({ key: large }),
        ];
        for (const call of calls) expect(await refusalOf(call())).toEqual(refused.requestTooLarge);
        expect(await t.revision()).toBe(before);
      },
    },
    {
      name: 'does not limit reads',
      run: async (t) => {
        expect((await t.kv.range({ key: large })).count).toBe(0n);
        const { succeeded } = await t.kv.txn({ compare: [{ key: t.key('a'), ...target.value(large) }] });
        expect(succeeded).toBe(false);
      },
    },
    {
      name: 'refuses a transaction of more parts than --max-txn-ops',
      run: async (t) => {
        const range = op.range({ key: t.key('a') });
        expect((await t.kv.txn({ success: [range, range, range] })).responses).toHaveLength(3);
        expect(await refusalOf(t.kv.txn({ success: [range, range, range, range] }))).toEqual(refused.tooManyOps);
        await t.kv.txn({ success: [op.txn({ success: [op.txn({ success: [range] })] })] });
        const deeper = [op.txn({ success: [op.txn({ success: [op.txn({ success: [range] })] })] })];
        expect(await refusalOf(t.kv.txn({ success: deeper }))).toEqual(refused.tooManyOps);
      },
    },
  ],
};
