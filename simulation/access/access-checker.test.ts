import { encodePutRequest, frameHeadroomBytes } from '@tenure/codec';
import type { AuthChange, Requester } from '@tenure/core';
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { AccessChecker, type Identity, type OpenWatch } from './access-checker.ts';
import { AccessLog } from './access-log.ts';

const everything = { type: 'readWrite', key: '\0', rangeEnd: '\0' } as const;
const setUp: readonly AuthChange[] = [
  { kind: 'addUser', user: 'root', passwordHash: 'x', noPassword: false },
  { kind: 'grantRole', user: 'root', role: 'root' },
  { kind: 'addUser', user: 'ann', passwordHash: 'x', noPassword: false },
  { kind: 'addRole', role: 'all' },
  { kind: 'grantPermission', role: 'all', permission: everything },
  { kind: 'grantRole', user: 'ann', role: 'all' },
  { kind: 'enable' },
];
const revocation: AuthChange = { kind: 'revokeRole', user: 'ann', role: 'all' };
const grant: AuthChange = { kind: 'grantRole', user: 'ann', role: 'all' };
const path = '/etcdserverpb.KV/Put';
const put = encodePutRequest({
  key: 'm/1',
  value: '',
  lease: 0n,
  prevKv: false,
  ignoreValue: false,
  ignoreLease: false,
}).subarray(frameHeadroomBytes);

/** Authentication is enabled, and ann has a token and every permission. */
function enabled() {
  const log = new AccessLog();
  const reports: string[] = [];
  let revision = 10;
  const checker = new AccessChecker({
    log,
    trueMs: () => 0,
    report: (rule, what) => reports.push(`${rule} ${what}`),
    toldRevision: () => revision,
    currentRevision: () => revision,
    keysOfLeaseAt: () => [],
  });
  const rootNow = (): Requester => ({ user: 'root', authRevision: log.versions[log.newest]!.access.revision });
  const change = (made: AuthChange): void => {
    log.applied({ kind: 'auth', change: made, by: rootNow() }, { revision, keysOfLease: () => [] });
  };
  /** The change is in the log, and its administrator knows. */
  const acknowledge = (made: AuthChange): void => {
    const from = log.changeCount;
    change(made);
    checker.acknowledged(made, from);
  };
  const logIn = (user: string, token: string): Identity => {
    const tokenDigest = createHash('sha256').update(token).digest('hex');
    change({ kind: 'issueToken', user, tokenDigest, authRevision: rootNow().authRevision });
    return { user, token };
  };
  for (const made of setUp) acknowledge(made);
  const ann = logIn('ann', 'a token');
  const asked = (by = ann) => checker.asked(by, path, put)!;
  /** Its server has all changes so far. */
  const watching = (): OpenWatch => checker.opened(ann, { key: 'm/', rangeEnd: 'm0' }, revision + 1);
  return { checker, log, reports, change, acknowledge, logIn, ann, asked, watching, advance: () => (revision += 1) };
}

test('a request may be decided by each version of its time', () => {
  const { checker, reports, change, asked } = enabled();
  checker.allowed(asked());
  const during = asked();
  change(revocation);
  checker.allowed(during);
  checker.denied(during);
  expect(reports).toEqual([]);
});

test('P1: nothing is allowed by permissions from before an acknowledged change, and nothing denied', () => {
  const { checker, reports, acknowledge, asked } = enabled();
  checker.denied(asked());
  acknowledge(revocation);
  checker.denied(asked());
  expect(reports).toEqual([expect.stringMatching(/^P1 Put of ann.*was denied/)]);
  checker.allowed(asked());
  acknowledge(grant);
  checker.denied(asked());
  expect(reports.slice(1)).toEqual([expect.stringMatching(/was allowed/), expect.stringMatching(/was denied/)]);
});

test('P1: a token ends with its user, with the password, and when authentication is enabled again', () => {
  const again: readonly (readonly AuthChange[])[] = [
    [{ kind: 'changePassword', user: 'ann', passwordHash: 'y' }],
    [{ kind: 'deleteUser', user: 'ann' }, setUp[2]!, grant],
    [{ kind: 'disable' }, { kind: 'enable' }],
  ];
  for (const changes of again) {
    const { checker, reports, acknowledge, asked, logIn } = enabled();
    for (const change of changes) acknowledge(change);
    checker.allowed(asked(logIn('ann', 'another token')));
    expect(reports).toEqual([]);
    checker.allowed(asked());
    expect(reports).toEqual([expect.stringMatching(/was allowed/)]);
  }
});

test('P1: a change that was acknowledged is in the log', () => {
  const { checker, reports, log } = enabled();
  checker.acknowledged(revocation, log.changeCount);
  expect(reports).toEqual(['P1 revokeRole was acknowledged and is not in the log']);
});

test('W12: a watch is sent no event from after the end of its permission', () => {
  const { checker, reports, acknowledge, watching, advance } = enabled();
  const watch = watching();
  acknowledge(revocation);
  // On the way, or sent by a server that lags.
  checker.sent(watch, 10);
  expect(reports).toEqual([]);
  checker.sent(watch, advance());
  expect(reports).toEqual([expect.stringMatching(/^W12 .*was sent events at revision 11/)]);
});

test('W12: a watch without permission ends, and no other', () => {
  const { checker, reports, acknowledge, watching } = enabled();
  const watch = watching();
  checker.checkEnded(0);
  checker.endedByPermission(watching());
  expect(reports).toEqual([expect.stringMatching(/^P1 .*could always read it/)]);
  acknowledge(revocation);
  expect(checker.forbiddenWatches).toBe(1);
  checker.checkEnded(0);
  expect(reports.slice(1)).toEqual([expect.stringMatching(/^W12 .*goes on without the permission/)]);
  checker.endedByPermission(watch);
  checker.checkEnded(0);
  expect(reports).toHaveLength(2);
});
