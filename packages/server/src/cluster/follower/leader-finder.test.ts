import { VirtualClock } from '@tenure/test-support';
import { expect, test, vi } from 'vitest';
import type { Replica } from '../../replica/replica.ts';
import { dialedUrl, LeaderFinder } from './leader-finder.ts';
import { leaderName, memberOfLeader } from '../link/member-name.ts';
import { LeadingServer } from '../testing/leading-server.ts';
import { systemClock } from '../../time/system-clock.ts';
import { systemRandom } from '../../random/system-random.ts';
import { GrpcLeaderStream } from './grpc-leader-stream.ts';

test('a follower connects to the port that the leader has registered, also to port 80', () => {
  expect(dialedUrl('http://10.0.0.7:2379')).toBe('http://10.0.0.7:2379');
  expect(dialedUrl('http://tenure.example:80')).toBe('http://tenure.example:80');
  expect(dialedUrl('http://[::1]:80')).toBe('http://[::1]:80');
});

test('invalid addresses in the log are skipped', () => {
  const nonsense = [
    '',
    'not a url',
    'http://',
    'http://h:0',
    'http://h:99999',
    'unix:///x',
    `http://${'h'.repeat(400)}:1`,
  ];
  for (const url of nonsense) expect(dialedUrl(url), url).toBeUndefined();
});

test('a leader with an invalid address is reported once, and reached at its other addresses', async () => {
  const server = await LeadingServer.start([2n]);
  const pair = server.replica;
  const warnings: string[] = [];
  const linked: unknown[] = [];
  const register = (clientUrls: string[]): Promise<unknown> =>
    pair.propose({ kind: 'registerMember', id: 1n, name: 'm1', clientUrls });
  await register(['not a url', 'x'.repeat(100_000)]);
  const finder = new LeaderFinder({
    clock: systemClock,
    random: systemRandom,
    open: (url, listener) => new GrpcLeaderStream(url, listener),
    replica: { state: pair.state, position: pair.position, linked: () => undefined } as unknown as Replica,
    memberId: 2n,
    run: 5,
    leaderId: leaderName(2n, 5),
    lookNow: () => undefined,
    onRenewed: () => undefined,
    onRenewalRefused: () => undefined,
    onLinked: (connection) => linked.push(connection),
    warn: (message) => warnings.push(message),
    onNameTaken: () => undefined,
  });
  try {
    for (let looks = 0; looks < 3; looks += 1) finder.look();
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(/m1 has registered an invalid address: "not a url", "x{100}"$/);
    expect(finder.problem).toBe('the address of the leader is not known');
    await register(['not a url', `http://${server.address}`]);
    finder.look();
    await vi.waitFor(() => expect(linked).toHaveLength(1), { timeout: 20_000 });
    expect(finder.problem).toBeUndefined();
  } finally {
    finder.stop();
    await server.close();
  }
});

test('a leader is reached at its peer URLs alone, if it has registered some', async () => {
  const clock = new VirtualClock();
  const clientUrls = ['http://10.0.0.7:2379'];
  const members = [
    { id: 1n, name: 'm1', clientUrls, peerUrls: ['https://10.0.0.7:2380', 'nonsense', 'https://a:2380'] },
  ];
  const state = { epoch: 3, leader: leaderName(1n, 4), secret: 'known', clusterId: 7n, members };
  const [tried, warnings]: [string[], string[]] = [[], []];
  const finder = new LeaderFinder({
    clock,
    random: systemRandom,
    open: (url, { onEnd }) => {
      tried.push(url);
      clock.after(1, () => onEnd({ code: 14, details: 'connect ECONNREFUSED' }));
      return { write: () => true, cancel: () => undefined };
    },
    replica: { state, linked: () => undefined } as unknown as Replica,
    memberId: 2n,
    run: 5,
    leaderId: leaderName(2n, 5),
    lookNow: () => undefined,
    onRenewed: () => undefined,
    onRenewalRefused: () => undefined,
    onLinked: () => undefined,
    warn: (message) => warnings.push(message),
    onNameTaken: () => undefined,
  });
  finder.look();
  await clock.advance(1_000);
  expect(new Set(tried)).toEqual(new Set(['https://10.0.0.7:2380', 'https://a:2380']));
  expect(warnings).toEqual(['the member m1 has registered an invalid address: "nonsense"']);
  expect(finder.problem).toBe('the leader cannot be reached');
  finder.stop();
});

test('an unreachable leader is reported once, and not before the next one could lead', async () => {
  const clock = new VirtualClock();
  const leader = { id: 1n, name: 'm1', clientUrls: ['http://127.0.0.1:1'] };
  const state = { epoch: 3, leader: leaderName(1n, 4), secret: 'known', clusterId: 7n, members: [leader] };
  const warnings: string[] = [];
  let tries = 0;
  const finder = new LeaderFinder({
    clock,
    random: systemRandom,
    open: (_address, { onEnd }) => {
      tries += 1;
      clock.after(1, () => onEnd({ code: 14, details: 'connect ECONNREFUSED' }));
      return { write: () => true, cancel: () => undefined };
    },
    replica: { state, linked: () => undefined } as unknown as Replica,
    memberId: 2n,
    run: 5,
    leaderId: leaderName(2n, 5),
    lookNow: () => undefined,
    onRenewed: () => undefined,
    onRenewalRefused: () => undefined,
    onLinked: () => undefined,
    warn: (message) => warnings.push(message),
    onNameTaken: () => undefined,
  });
  finder.look();
  await clock.advance(1_500);
  expect(tries).toBeGreaterThan(10);
  expect(warnings).toEqual([]);
  await clock.advance(10_000);
  expect(warnings).toEqual(['the leader m1 (http://127.0.0.1:1) cannot be reached: connect ECONNREFUSED']);
  finder.stop();
});

test('the name of a leader contains its member id, up to the largest one', () => {
  const memberId = 2n ** 64n - 1n;
  expect(memberOfLeader(leaderName(memberId, 77))).toBe(memberId);
  expect(memberOfLeader('a server alone')).toBeUndefined();
});
