import { describe, expect, test } from 'vitest';
import { checkHeaders, type HeaderSeen } from './header-check.ts';
import { checkLeases } from './lease-check.ts';
import type { LeaseInput, LeaseOperation } from './lease-operation.ts';

const ttlMs = 1_000;
const id = 7n;
const told = (
  calledMs: number,
  returnedMs: number,
  kind: Exclude<LeaseInput['kind'], 'grant' | 'attach'>,
  alive = true,
) => operation(calledMs, returnedMs, { kind, id }, alive);
const operation = (calledMs: number, returnedMs: number, input: LeaseInput, alive: boolean): LeaseOperation => {
  return { client: 1, input, outcome: { kind: 'known', output: { alive } }, calledMs, returnedMs };
};
const grant = operation(0, 1, { kind: 'grant', id, ttlMs }, true);
const attach = (calledMs: number, returnedMs: number, alive = true): LeaseOperation =>
  operation(calledMs, returnedMs, { kind: 'attach', id, key: 'k' }, alive);
const lostRevoke: LeaseOperation = { ...told(50, 50, 'revoke'), outcome: { kind: 'unknown' } };

describe('leases', () => {
  test.each<[string, LeaseOperation[]]>([
    ['a lease and its end', [grant, told(10, 11, 'renew'), told(2_000, 2_001, 'renew', false)]],
    ['a revoke', [grant, told(10, 11, 'revoke'), told(12, 13, 'renew', false), attach(12, 13, false)]],
    ['a renewal that overlaps with the revoke', [grant, told(10, 20, 'revoke'), told(15, 30, 'renew')]],
    ['a revoke without an answer', [grant, lostRevoke, told(60, 61, 'renew'), told(70, 71, 'renew', false)]],
    ['an end reported by a watch', [grant, told(1_005, 1_005, 'sawEnd', false)]],
    ['another lease', [grant, told(10, 11, 'revoke'), operation(20, 21, { kind: 'renew', id: 8n }, true)]],
    ['a revoke of a lease that has ended', [grant, told(1_100, 1_101, 'revoke', false)]],
  ])('%s: no violation', (_, operations) => {
    expect(checkLeases(operations)).toEqual([]);
  });

  test.each<[string, LeaseOperation[], RegExp]>([
    ['a renewal after a revoke', [grant, told(10, 11, 'revoke'), told(12, 13, 'renew')], /it had ended before/],
    ['an attached key after a revoke', [grant, told(10, 11, 'revoke'), attach(12, 13)], /it had ended before/],
    ['a TTL after a revoke', [grant, told(10, 11, 'revoke'), told(12, 13, 'timeToLive')], /it had ended before/],
    [
      'a renewal after its end',
      [grant, told(1_010, 1_011, 'renew', false), told(1_012, 1_013, 'renew')],
      /it had ended/,
    ],
    ['an end before the TTL of the grant', [grant, told(900, 901, 'renew', false)], /too early/],
    [
      'an end before the TTL of a renewal',
      [grant, told(500, 501, 'renew'), told(1_200, 1_201, 'timeToLive', false)],
      /too early/,
    ],
    [
      'a key that is deleted too early',
      [grant, told(500, 501, 'renew'), told(1_200, 1_200, 'sawEnd', false)],
      /too early/,
    ],
    ['a grant that another server does not know', [grant, told(2, 3, 'renew', false)], /too early/],
    ['an attachment refused too early', [grant, attach(2, 3, false)], /too early/],
    ['a revoke refused too early', [grant, told(2, 3, 'revoke', false)], /too early/],
    ['two revokes that both succeed', [grant, told(10, 20, 'revoke'), told(11, 21, 'revoke')], /so was/],
  ])('%s is detected', (_, operations, problem) => {
    expect(checkLeases(operations).join('\n')).toMatch(problem);
  });
});

describe('revisions in headers', () => {
  const header = (client: number, calledMs: number, returnedMs: number, revision: number): HeaderSeen => {
    return { client, server: 's1', call: 'Range', calledMs, returnedMs, revision };
  };

  test('may differ in replies to calls that overlap', () => {
    const headers = [header(1, 0, 10, 5), header(1, 1, 11, 4), header(1, 11, 12, 5)];
    expect(checkHeaders(headers, { acrossClients: true })).toEqual([]);
  });

  test('may not go back for one client', () => {
    const headers = [header(1, 0, 1, 5), header(2, 2, 3, 4), header(1, 4, 5, 4)];
    const problems = checkHeaders(headers, { acrossClients: false });
    expect(problems).toEqual([expect.stringMatching(/revision 4 to client 1 by .* after revision 5 to client 1/)]);
  });

  test('may not go back for another client that asks later', () => {
    const headers = [header(1, 0, 1, 5), header(2, 2, 3, 4)];
    expect(checkHeaders(headers, { acrossClients: true })).toHaveLength(1);
    expect(checkHeaders(headers, { acrossClients: false })).toEqual([]);
  });
});
