import { expect } from 'vitest';
import { etcdserverpb } from '@tenure/protocol';
import { refusalOf, type CallStatus } from '../client/refusal.ts';
import { bytes } from './bytes.ts';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';
import { op, target } from './txn-parts.ts';

const { AlarmRequest_AlarmAction: Action, AlarmType } = etcdserverpb;
const quotaBackendBytes = 2 * 1024 * 1024;
const valueBytes = 64 * 1024;
/** Far more than the quota, if the server stored it. */
const maxPuts = 200;

/** Puts until the server refuses, and restores the server when the case ends. */
async function fill(t: CaseContext): Promise<CallStatus> {
  t.cleanUp(() => recover(t));
  const value = bytes('v'.repeat(valueBytes));
  for (let index = 0; index < maxPuts; index += 1) {
    const put = t.kv.put({ key: t.key(`fill${index}`), value });
    const accepted = await put.then(
      () => true,
      () => false,
    );
    if (!accepted) return refusalOf(put);
  }
  throw new Error(`the server took ${maxPuts * valueBytes} bytes with a quota of ${quotaBackendBytes}`);
}

async function alarms(t: CaseContext): Promise<etcdserverpb.AlarmMember[]> {
  return (await t.maintenance.alarm({ action: Action.GET })).alarms;
}

async function recover(t: CaseContext): Promise<void> {
  await t.kv.deleteRange(t.all());
  await t.kv.compact({ revision: await t.revision(), physical: true });
  await t.maintenance.defragment({});
  for (const { memberID, alarm } of await alarms(t)) {
    await t.maintenance.alarm({ action: Action.DEACTIVATE, memberID, alarm });
  }
}

const cases: Case[] = [
  {
    name: 'refuses a put that passes the quota, raises the alarm and shows it in Status',
    run: async (t) => {
      expect(await fill(t)).toEqual(refused.noSpace);
      const { header } = await t.kv.range({ key: t.key('a') });
      expect(await alarms(t)).toMatchObject([{ memberID: header?.memberId, alarm: AlarmType.NOSPACE }]);
      const { errors } = await t.maintenance.status({});
      expect(errors).toHaveLength(1);
      expect(errors[0]).toContain('NOSPACE');
    },
  },
  {
    name: 'has raised the alarm when it answers the refusal',
    run: async (t) => {
      await fill(t);
      expect(await alarms(t)).toHaveLength(1);
    },
  },
  {
    name: 'refuses everything that would add, however small',
    run: async (t) => {
      await fill(t);
      const before = await t.revision();
      expect(await refusalOf(t.kv.put({ key: t.key('a') }))).toEqual(refused.noSpace);
      expect(await refusalOf(t.lease.leaseGrant({ TTL: 60n }))).toEqual(refused.noSpace);
      const put = op.put({ key: t.key('a') });
      const never = { key: t.key('a'), ...target.version(9n) };
      expect(await refusalOf(t.kv.txn({ success: [put] }))).toEqual(refused.noSpace);
      expect(await refusalOf(t.kv.txn({ compare: [never], success: [put] }))).toEqual(refused.noSpace);
      expect(await t.revision()).toBe(before);
    },
  },
  {
    name: 'still reads, deletes, compacts, revokes, renews and watches',
    run: async (t) => {
      const [kept, revoked] = [await t.grant(60n), await t.grant(60n)];
      await t.put('leased', '1', revoked);
      await fill(t);
      const watch = t.watchStream();
      const { watchId } = await watch.create({ key: t.key('leased') });
      const base = await t.revision();
      expect(await t.keepAliveStream().renew(kept)).toMatchObject({ TTL: 60n });
      await t.lease.leaseRevoke({ ID: revoked });
      expect(t.events(await watch.events(watchId, 1), base)).toEqual(['DELETE leased +1']);
      expect((await t.kv.deleteRange({ key: t.key('fill0') })).deleted).toBe(1n);
      const txn = await t.kv.txn({ success: [op.delete({ key: t.key('fill1') }), op.range({ key: t.key('fill2') })] });
      expect(txn.header?.revision).toBe(base + 3n);
      await t.kv.compact({ revision: base + 3n });
      expect((await t.kv.range({ ...t.all('fill'), countOnly: true })).count).toBeGreaterThan(5n);
    },
  },
  {
    name: 'accepts writes again when space was freed and the alarm was deactivated, and not before',
    run: async (t) => {
      await fill(t);
      const [alarm] = await alarms(t);
      await t.kv.deleteRange(t.all('fill'));
      await t.kv.compact({ revision: await t.revision(), physical: true });
      await t.maintenance.defragment({});
      expect(await refusalOf(t.kv.put({ key: t.key('a') }))).toEqual(refused.noSpace);
      const memberID = alarm?.memberID ?? 0n;
      const reply = await t.maintenance.alarm({ action: Action.DEACTIVATE, memberID, alarm: AlarmType.NOSPACE });
      expect(reply.alarms).toMatchObject([{ memberID, alarm: AlarmType.NOSPACE }]);
      expect(await alarms(t)).toEqual([]);
      await t.put('a', '1');
      expect(await t.get('a')).toMatchObject({ version: 1n });
    },
  },
  {
    name: 'lets a client raise the alarm and end it',
    run: async (t) => {
      t.cleanUp(() => recover(t));
      const memberID = (await t.kv.range({ key: t.key('a') })).header?.memberId ?? 0n;
      const nospace = { memberID, alarm: AlarmType.NOSPACE };
      expect((await t.maintenance.alarm({ action: Action.ACTIVATE, ...nospace })).alarms).toMatchObject([nospace]);
      expect(await alarms(t)).toMatchObject([nospace]);
      const filtered = await t.maintenance.alarm({ action: Action.GET, alarm: AlarmType.NOSPACE });
      expect(filtered.alarms).toMatchObject([nospace]);
      expect(await refusalOf(t.kv.put({ key: t.key('a') }))).toEqual(refused.noSpace);
      await t.maintenance.alarm({ action: Action.DEACTIVATE, ...nospace });
      await t.put('a');
    },
  },
];

export const noSpace: CaseGroup = { name: 'the quota', server: { quotaBackendBytes }, cases };
