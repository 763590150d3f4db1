import { expect, test } from 'vitest';
import { hostAndPort, leaderName, memberOfLeader } from './leader-finder.ts';

test('a follower dials the port that the leader has registered, the port 80 too', () => {
  expect(hostAndPort('http://10.0.0.7:2379')).toBe('10.0.0.7:2379');
  expect(hostAndPort('http://tenure.example:80')).toBe('tenure.example:80');
  expect(hostAndPort('http://[::1]:80')).toBe('[::1]:80');
});

test('the name of a leader tells its member, up to the largest id', () => {
  const memberId = 2n ** 64n - 1n;
  expect(memberOfLeader(leaderName(memberId, 77))).toBe(memberId);
  expect(memberOfLeader('a server alone')).toBeUndefined();
});
