import { hasPostgres } from '@tenure/test-support';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../cluster/cluster.ts';
import type { ClusterMember } from '../cluster/cluster-member.ts';
import { keepPutting, PeerCluster } from './peer-cluster.ts';
import { callOf } from './peer-stranger.ts';

const limits = { timeout: 180_000 };
const link = '/tenure.peer.v1.Peer/Link';
let cluster: PeerCluster;
beforeEach(async () => {
  if (hasPostgres()) cluster = await PeerCluster.create();
});
afterEach(() => cluster?.dispose());

describe.skipIf(!hasPostgres())('servers with a port of their own', limits, () => {
  test('reach each other there over TLS, also after the leader has died', async () => {
    const flags = cluster.flags(['--peer-cert-allowed-cn', 'other,server']);
    const leader = await cluster.startServers(flags);
    const [follower] = await cluster.followers();
    expect(await follower?.put('a', '1')).toBe(2);
    const urls = await cluster.peerUrls(leader);
    expect(Object.keys(urls).sort()).toEqual(['s1', 's2', 's3']);
    for (const each of Object.values(urls)) expect(each).toEqual([expect.stringMatching(/^https:\/\/127.0.0.1:\d+$/)]);
    const { epoch } = await leader.leadership();
    await leader.stop('SIGKILL');
    const next = await cluster.leader(cluster.members, epoch);
    const left = cluster.members.find((member) => member !== next);
    await eventually('a put through the follower that is left', async () => left?.put('b', '2'));
    expect(await next.get('b')).toBe('2');
    await cluster.startServer(leader.name, flags);
    await cluster.leader();
    await cluster.checkSameState();
  });

  test('serve nothing but servers there, and no servers at the addresses for clients', async () => {
    const { server } = cluster;
    const stranger = await cluster.strangerTo(await cluster.startServers(cluster.flags()));
    const unknown = (service: string) => ({ code: 12, details: `unknown service ${service}` });
    for (const member of cluster.members) {
      expect(await callOf(member.address, link)).toEqual(unknown('tenure.peer.v1.Peer'));
      expect(await callOf(member.address, '/no.Such/Call')).toEqual(unknown('no.Such'));
    }
    for (const [service, method] of [
      ['etcdserverpb.KV', 'Range'],
      ['etcdserverpb.Lease', 'LeaseKeepAlive'],
      ['etcdserverpb.Cluster', 'MemberList'],
      ['etcdserverpb.Maintenance', 'Snapshot'],
      ['grpc.health.v1.Health', 'Check'],
    ] as const) {
      expect(await stranger.call(`/${service}/${method}`, server)).toEqual(unknown(service));
    }
    for (const path of ['/', '/health', '/metrics', '/version', '/readyz', '/livez']) {
      const [head = '', body] = (await stranger.get(path, server)).split('\r\n\r\n');
      expect([head.split('\r\n')[0], body]).toEqual(['HTTP/1.1 404 Not Found', '']);
    }
    // A server without the secret learns nothing either.
    expect(await stranger.call(link, server)).toEqual({ code: 0, details: '' });
  });

  test('refuse certificates before they answer anything, while clients are served', async () => {
    const leader = await cluster.startServers(cluster.flags(['--peer-cert-allowed-cn', 'server']));
    const [follower] = (await cluster.followers()) as [ClusterMember];
    const { authority, other } = cluster;
    const stranger = await cluster.strangerTo(leader);
    const stop = keepPutting(follower);
    for (const [what, certificate, reason] of [
      ['none', undefined, /PEER_DID_NOT_RETURN_A_CERTIFICATE/],
      ['of another authority', other.issue('server'), /UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO/],
      ['expired', authority.issue('server', { isExpired: true }), /CERT_HAS_EXPIRED/],
      ['for the other side alone', authority.issue('server', { usage: 'serverAuth' }), /INVALID_PURPOSE/],
      ['with another name', authority.issue('someone'), /the common name of the certificate is not allowed/],
    ] as const) {
      expect((await stranger.speak(certificate)).bytes, what).toBe('');
      const { process } = leader;
      await eventually(`the leader logs why: ${what}`, async () => reason.test(process.err) || undefined);
    }
    expect(leader.process.err).toContain('TLS handshakes of servers failed');
    expect(await stop()).toBeGreaterThan(10);
  });
});

describe.skipIf(!hasPostgres())('a cluster that gets ports for servers', limits, () => {
  test('works with and without, and registers them when every member knows them', async () => {
    const flags = cluster.flags();
    const plain = cluster.files();
    await cluster.startServers(plain);
    const [s1, s2, s3] = cluster.members as [ClusterMember, ClusterMember, ClusterMember];
    await s3.stop();
    await s2.stop();
    const renewed = await cluster.startServer('s2', flags);
    expect(await cluster.peerUrls(renewed)).toMatchObject({ s2: [] });
    await eventually(
      's2 says why',
      async () => /peer URLs of this server are not registered yet/.test(renewed.process.err) || undefined,
    );
    expect(await renewed.put('a', '1')).toBe(2);
    expect(await s1.put('b', '1')).toBe(3);
    await cluster.startServer('s3', plain);
    await eventually('s2 is registered', async () =>
      (await cluster.peerUrls(s1))['s2']?.length === 1 ? true : undefined,
    );
    for (const member of cluster.members) await eventually(member.name, () => member.put('c', member.name));
    for (const round of [1, 2, 3]) {
      const leader = await cluster.leader();
      const { epoch } = await leader.leadership();
      await leader.stop('SIGKILL');
      await cluster.leader(cluster.members, epoch);
      for (const member of cluster.members) await eventually(member.name, () => member.put('d', `${round}`));
      await cluster.startServer(leader.name, leader.name === 's2' || round > 1 ? flags : plain);
    }
    await cluster.leader();
    await cluster.checkSameState();
  });
});
