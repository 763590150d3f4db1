import { AuthState } from '@tenure/core';
import { expect, test } from 'vitest';
import { decodeBoundedTxnRequest } from '@tenure/codec';
import { errorCatalogue } from '@tenure/protocol';
import { CommandRules } from './command-rules.ts';

const rules = new CommandRules({
  state: () => ({ alarms: [], auth: AuthState.initial, members: [] }),
  knowAllAuth: () => true,
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
