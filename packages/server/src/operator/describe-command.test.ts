import { expect, test } from 'vitest';
import { describeCommand } from './describe-command.ts';

test('a put shows its key as text and hides its value', () => {
  const put = { key: Buffer.from('clé\n').toString('latin1'), value: 'secret', lease: 0xa1n };
  const line = describeCommand({ kind: 'put', put: { ...put, prevKv: false, ignoreValue: false, ignoreLease: false } });
  expect(line).toBe('put "clé\\n" (6 bytes) lease 00000000000000a1');
});

test('a label is text already', () => {
  expect(describeCommand({ kind: 'leaseGrant', id: -1n, ttlMs: 500, label: 'hé' })).toBe(
    'leaseGrant ffffffffffffffff of 500 ms "hé"',
  );
});

test('long lists are truncated', () => {
  const leases = Array.from({ length: 10 }, (_, at) => ({ id: BigInt(at), renewIndex: 7 }));
  const line = describeCommand({ kind: 'expireLeases', leases });
  expect(line).toContain('0000000000000007@7, and 2 more');
  expect(line).not.toContain('0000000000000008@7');
});
