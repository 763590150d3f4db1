import { expect } from 'vitest';
import { Code, refusalOf } from '../client/refusal.ts';
import type { CaseContext } from './case-context.ts';
import type { Case, CaseGroup } from './case.ts';
import { refused } from './refused.ts';

const unknownId = 5n;
const peerUrl = 'http://127.0.0.1:2380';
const notEnoughStarted = {
  code: Code.unknown,
  details: 'etcdserver: re-configuration failed due to not enough started members',
};

async function ownId(t: CaseContext): Promise<bigint> {
  return (await t.maintenance.status({})).header?.memberId ?? 0n;
}

/** None of them changes the members. */
const cases: Case[] = [
  {
    name: 'knows no member to remove, update or promote by an id that none has',
    run: async (t) => {
      const expectUnknown = async (call: Promise<unknown>): Promise<void> => {
        expect(await refusalOf(call)).toEqual(refused.memberNotFound);
        // raft drops a change of members that arrives before the last acknowledged one counts as applied, and etcd then
        // does not reply. The next entry makes it count.
        await t.kv.put({ key: t.key('between') });
      };
      for (const ID of [unknownId, 0n, 2n ** 64n - 1n]) {
        await expectUnknown(t.cluster.memberRemove({ ID }));
        await expectUnknown(t.cluster.memberPromote({ ID }));
        for (const peerURLs of [[], [peerUrl], ['nonsense']])
          await expectUnknown(t.cluster.memberUpdate({ ID, peerURLs }));
      }
    },
  },
  {
    name: 'does not remove the only member',
    run: async (t) => {
      const ID = await ownId(t);
      expect(await refusalOf(t.cluster.memberRemove({ ID }))).toEqual(notEnoughStarted);
      expect((await t.cluster.memberList({})).members.map((member) => member.ID)).toEqual([ID]);
    },
  },
  {
    name: 'promotes no member that is no learner',
    run: async (t) => {
      const refusal = await refusalOf(t.cluster.memberPromote({ ID: await ownId(t) }));
      expect(refusal).toEqual({
        code: Code.failedPrecondition,
        details: 'etcdserver: can only promote a learner member',
      });
    },
  },
  {
    name: 'adds no member whose URLs are none',
    run: async (t) => {
      const bad = [
        'nonsense',
        'http://127.0.0.1',
        'http://127.0.0.1:1/path',
        'http://127.0.0.1:1/',
        'ftp://127.0.0.1:1',
        'http://a b:1',
        'http://127.0.0.1:port',
        '',
      ];
      const lists = [[], ...bad.map((url) => [url]), [peerUrl, 'nonsense']];
      for (const peerURLs of lists) {
        for (const isLearner of [false, true]) {
          const refusal = await refusalOf(t.cluster.memberAdd({ peerURLs, isLearner }));
          expect(refusal, peerURLs.join()).toEqual(refused.badMemberUrls);
        }
      }
    },
  },
  {
    name: 'adds no member by a call, nor another URL to one',
    tenureOnly: 'members come with the log here; etcd adds one, and waits for it to start',
    run: async (t) => {
      const notCapable = { code: Code.failedPrecondition, details: 'etcdserver: not capable' };
      const urls = [peerUrl, ' https://[::1]:1 ', 'http://:1', 'http://host:', 'http://u:p@h:1?q=1', 'unix://a:1'];
      for (const url of urls) {
        expect(await refusalOf(t.cluster.memberAdd({ peerURLs: [url] })), url).toEqual(notCapable);
      }
      expect(await refusalOf(t.cluster.memberAdd({ peerURLs: urls, isLearner: true }))).toEqual(notCapable);
      const ID = await ownId(t);
      expect(await refusalOf(t.cluster.memberUpdate({ ID, peerURLs: [peerUrl] }))).toEqual(notCapable);
    },
  },
  {
    name: 'does not transfer the leadership to an unknown member, and keeps the leader',
    run: async (t) => {
      for (const targetID of [unknownId, 0n]) {
        expect(await refusalOf(t.maintenance.moveLeader({ targetID }))).toEqual({
          code: Code.failedPrecondition,
          details: 'etcdserver: bad leader transferee',
        });
      }
      const targetID = await ownId(t);
      expect((await t.maintenance.moveLeader({ targetID })).header).toBeUndefined();
      expect((await t.maintenance.status({})).leader).toBe(targetID);
    },
  },
];

export const membership: CaseGroup = { name: 'members of one server', cases };
