import { expect } from 'vitest';
import { etcdserverpb } from '@tenure/protocol';
import { Code, refusalOf } from '../client/refusal.ts';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';

const { AlarmRequest_AlarmAction: Action, AlarmType } = etcdserverpb;
const unknownType = 9 as etcdserverpb.AlarmType;

interface Alarm {
  readonly memberID: bigint;
  readonly alarm: etcdserverpb.AlarmType;
}

function plain(alarms: readonly Alarm[]): Alarm[] {
  return alarms.map(({ memberID, alarm }) => ({ memberID, alarm }));
}

async function ask(t: CaseContext, action: etcdserverpb.AlarmRequest_AlarmAction, alarm: Alarm): Promise<Alarm[]> {
  return plain((await t.maintenance.alarm({ action, ...alarm })).alarms);
}

async function listed(t: CaseContext, alarm: etcdserverpb.AlarmType, memberID = 0n): Promise<Alarm[]> {
  return ask(t, Action.GET, { memberID, alarm });
}

const cases: Case[] = [
  {
    name: 'raises an alarm for a member that does not exist, and for none, until it is disarmed by the same id',
    run: async (t) => {
      const raised = [77n, 0n, 2n ** 64n - 1n].map((memberID) => ({ memberID, alarm: AlarmType.NOSPACE }));
      for (const alarm of raised) {
        expect(await ask(t, Action.ACTIVATE, alarm)).toEqual([alarm]);
        expect(await ask(t, Action.ACTIVATE, alarm)).toEqual([alarm]);
      }
      const all = await listed(t, AlarmType.NONE, 55n);
      expect(all.toSorted((a, b) => (a.memberID < b.memberID ? -1 : 1))).toEqual([raised[1], raised[0], raised[2]]);
      expect(await ask(t, Action.DEACTIVATE, { memberID: 78n, alarm: AlarmType.NOSPACE })).toEqual([]);
      expect(await ask(t, Action.DEACTIVATE, { memberID: 77n, alarm: AlarmType.CORRUPT })).toEqual([]);
      expect(await ask(t, Action.DEACTIVATE, { memberID: 77n, alarm: AlarmType.NONE })).toEqual([]);
      for (const alarm of raised) {
        expect(await ask(t, Action.DEACTIVATE, alarm)).toEqual([alarm]);
        expect(await ask(t, Action.DEACTIVATE, alarm)).toEqual([]);
      }
      expect(await listed(t, AlarmType.NONE)).toEqual([]);
    },
  },
  {
    name: 'lists the alarms of the type that is asked for',
    run: async (t) => {
      const alarm = { memberID: 77n, alarm: AlarmType.NOSPACE };
      await ask(t, Action.ACTIVATE, alarm);
      expect(await listed(t, AlarmType.NONE)).toEqual([alarm]);
      expect(await listed(t, AlarmType.NOSPACE)).toEqual([alarm]);
      expect(await listed(t, AlarmType.CORRUPT)).toEqual([]);
      expect(await listed(t, unknownType)).toEqual([]);
      expect(await ask(t, Action.DEACTIVATE, { memberID: 77n, alarm: unknownType })).toEqual([]);
      await ask(t, Action.DEACTIVATE, alarm);
    },
  },
  {
    name: 'names an alarm of no member in Status without a member',
    run: async (t) => {
      const alarms = [0n, 77n].map((memberID) => ({ memberID, alarm: AlarmType.NOSPACE }));
      for (const alarm of alarms) await ask(t, Action.ACTIVATE, alarm);
      const { errors } = await t.maintenance.status({});
      expect(errors.toSorted()).toEqual(['alarm:NOSPACE ', 'memberID:77 alarm:NOSPACE ']);
      for (const alarm of alarms) await ask(t, Action.DEACTIVATE, alarm);
    },
  },
  {
    name: 'raises no alarm without a type',
    since: '3.6',
    run: async (t) => {
      expect(await ask(t, Action.ACTIVATE, { memberID: 77n, alarm: AlarmType.NONE })).toEqual([]);
      expect(await listed(t, AlarmType.NONE)).toEqual([]);
    },
  },
  {
    name: 'refuses an alarm of a type that it does not know',
    tenureOnly: 'etcd keeps and lists it; servers of an earlier version on the same log would read it as CORRUPT',
    run: async (t) => {
      const refusal = await refusalOf(ask(t, Action.ACTIVATE, { memberID: 77n, alarm: unknownType }));
      expect(refusal.code).toBe(Code.invalidArgument);
      expect(await listed(t, AlarmType.NONE)).toEqual([]);
    },
  },
  {
    name: 'refuses an unknown alarm action',
    tenureOnly: 'etcd ends, and ends again whenever it reads its log',
    run: async (t) => {
      const alarm = { memberID: 77n, alarm: AlarmType.NOSPACE };
      await ask(t, Action.ACTIVATE, alarm);
      const unknownAction = 7 as etcdserverpb.AlarmRequest_AlarmAction;
      expect((await refusalOf(ask(t, unknownAction, alarm))).code).toBe(Code.invalidArgument);
      expect(await listed(t, AlarmType.NONE)).toEqual([alarm]);
      await ask(t, Action.DEACTIVATE, alarm);
    },
  },
];

export const alarms: CaseGroup = { name: 'Maintenance.Alarm', cases };
