import { AuthState, type Command, type StateMachine } from '@tenure/core';
import { expect, test } from 'vitest';
import { decodeBoundedTxnRequest } from '@tenure/codec';
import { errorCatalogue } from '@tenure/protocol';
import { CommandRules } from './command-rules.ts';

type Member = StateMachine['members'][number];

const rules = new CommandRules({
  state: () => ({ alarms: [], auth: AuthState.initial, members: [] }),
  canAllApply: () => true,
  quota: { admit: () => undefined },
  maxRequestBytes: 10,
  maxTxnOps: 1,
});
const put = { key: 'a', value: '', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };

test('the command of a client may be too large, that of a server may not', () => {
  expect(rules.check({ kind: 'put', put }, 10)).toBeUndefined();
  expect(rules.check({ kind: 'put', put }, 11)).toMatchObject({ message: errorCatalogue.RequestTooLarge.text });
  const clientUrls = ['http://10.0.0.7:2379', 'https://tenure.example:443'];
  expect(rules.check({ kind: 'registerMember', id: 1n, name: 'm1', clientUrls }, 1_000)).toBeUndefined();
  expect(rules.check({ kind: 'alarm', action: 'activate', memberId: 1n, alarm: 'nospace' }, 1_000)).toBeUndefined();
  expect(rules.check({ kind: 'leaseRevoke', id: 1n }, 1_000)).toBeUndefined();
});

test.each(['compare', 'success', 'failure'])(
  'a transaction with very many fields %s is not decoded to its end',
  (list) => {
    const tag = { compare: 0x0a, success: 0x12, failure: 0x1a }[list] ?? 0;
    const request = Buffer.alloc(1_500_000, Buffer.of(tag, 0));
    const txn = decodeBoundedTxnRequest(request, rules.maxReadTxnOps);
    expect(txn.compare.length + txn.success.length + txn.failure.length).toBe(rules.maxReadTxnOps);
    expect(rules.txnRefusal(txn)).toMatchObject({ message: errorCatalogue.TooManyOps.text });
  },
);

test('what servers of an earlier version stop at waits until all know it, or the state has it already', () => {
  const kinds: number[] = [];
  const member = { id: 1n, name: 'm1', clientUrls: ['http://a:1'] };
  const rulesWith = (knows: boolean, members: readonly Member[] = []): CommandRules =>
    new CommandRules({
      state: () => ({ alarms: [], auth: AuthState.initial, members }),
      canAllApply: (kind) => kinds.push(kind) > 0 && knows,
      quota: { admit: () => undefined },
      maxRequestBytes: 10,
      maxTxnOps: 1,
    });
  const user: Command = {
    kind: 'auth',
    change: { kind: 'addUser', user: 'ada', passwordHash: 'x', noPassword: false },
  };
  const plain: Command = { kind: 'registerMember', ...member };
  const withPeerUrls: Command = { ...plain, peerUrls: ['http://a:2'] };
  const tooEarly = { message: errorCatalogue.NotCapable.text };
  for (const command of [user, withPeerUrls]) {
    expect(rulesWith(false).refusal(command)).toMatchObject(tooEarly);
    expect(rulesWith(false).versionRefusal(command)).toMatchObject(tooEarly);
    expect(rulesWith(true).refusal(command)).toBeUndefined();
  }
  expect(new Set(kinds)).toEqual(new Set([18, 20]));
  expect(rulesWith(false, [member]).refusal(withPeerUrls)).toMatchObject(tooEarly);
  expect(rulesWith(false, [{ ...member, peerUrls: ['http://a:2'] }]).refusal(withPeerUrls)).toBeUndefined();
  for (const command of [plain, { ...plain, peerUrls: [] }]) expect(rulesWith(false).refusal(command)).toBeUndefined();
});

test('peer URLs follow the rules of those for clients', () => {
  for (const peerUrls of [['not a url'], ['http://a:0'], Array<string>(33).fill('http://a:1')]) {
    const refusal = rules.refusal({ kind: 'registerMember', id: 1n, name: 'm', clientUrls: [], peerUrls });
    expect(refusal).toMatchObject({ message: errorCatalogue.MemberBadUrls.text });
  }
});
