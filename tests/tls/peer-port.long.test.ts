import { hasPostgres } from '@tenure/test-support';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../cluster/cluster.ts';
import type { ClusterMember } from '../cluster/cluster-member.ts';
import { keepPutting, PeerCluster } from './peer-cluster.ts';

/** Beyond the connections at the addresses for servers, and the places reserved for them. */
const tooManyConnections = 256 + 64 + 20;

let cluster: PeerCluster;
beforeEach(async () => {
  if (hasPostgres()) cluster = await PeerCluster.create();
});
afterEach(() => cluster?.dispose());

describe.skipIf(!hasPostgres())('a port for servers', { timeout: 300_000 }, () => {
  test('tells nothing to garbage, half handshakes and a client that never reads, and servers still join', async () => {
    const flags = cluster.flags(['--peer-cert-allowed-cn', 'server']);
    const leader = await cluster.startServers(flags);
    const [follower, third] = (await cluster.followers()) as [ClusterMember, ClusterMember];
    const stop = keepPutting(follower);
    const stranger = await cluster.strangerTo(leader);
    for (const garbage of ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'GET / HTTP/1.1\r\n\r\n', '\0'.repeat(70_000)]) {
      expect((await stranger.send(Buffer.from(garbage, 'latin1'))).bytes).toBe('');
    }
    for (let count = 0; count < 20; count += 1) stranger.neverRead(cluster.server);
    await eventually('all that flood it with PINGs are cut off', async () => stranger.open === 0 || undefined);
    const halfOpen = stranger.send(Buffer.from('\x16\x03', 'latin1'));
    await stranger.beginHandshakes(tooManyConnections);
    expect(stranger.open).toBeGreaterThan(250);
    await third.stop('SIGKILL');
    // There is a place for it beside all of them.
    const again = await cluster.startServer(third.name, flags);
    await eventually('a put through a server that joins', async () => again.put('joined', '1'));
    expect((await halfOpen).bytes).toBe('');
    expect(await stop()).toBeGreaterThan(10);
    await cluster.checkSameState();
  });

  test.each([
    ['without TLS', ['--listen-peer-urls', 'http://127.0.0.1:0']],
    ['with certificates that servers make', ['--listen-peer-urls', 'https://127.0.0.1:0', '--peer-auto-tls']],
  ])('links servers %s', async (_, flags) => {
    const inFolder = (name: string): readonly string[] => [...flags, '--data-dir', cluster.folderOf(name)];
    await Promise.all(['s1', 's2'].map((name) => cluster.startServer(name, inFolder(name))));
    const leader = await cluster.leader();
    const [follower] = (await cluster.followers()) as [ClusterMember];
    expect(Object.values(await cluster.peerUrls(leader)).flat()).toHaveLength(2);
    expect(await follower.put('a', '1')).toBe(2);
    await leader.stop('SIGKILL');
    await eventually('the other one leads', async () => follower.put('b', '1'));
  });

  test('is for certificates of its host, and of the allowed hosts, on both sides', async () => {
    const { authority } = cluster;
    const elsewhere = authority.issue('server', { alternativeNames: 'DNS:elsewhere.example' });
    const allowed = ['--peer-cert-allowed-hostname', '127.0.0.1'];
    const s1 = await cluster.startServer('s1', cluster.flags(allowed));
    const stranger = await cluster.strangerTo(s1);
    expect((await stranger.speak(elsewhere)).bytes).toBe('');
    const asClient = cluster.startServer('s2', cluster.flags([], elsewhere));
    await expect(asClient).rejects.toThrow(/the connection after the TLS handshake: it may not accept/);
    const unwilling = cluster.startServer('s3', cluster.flags(['--peer-cert-allowed-hostname', 'b.example']));
    await expect(unwilling).rejects.toThrow(/the certificate is for none of the allowed host names/);
    const strict = cluster.startServer('s4', cluster.flags(['--peer-cert-allowed-cn', 'b']));
    await expect(strict).rejects.toThrow(/the common name of the certificate is not allowed/);
    const s5 = await cluster.startServer('s5', cluster.flags(allowed));
    expect(await s5.put('a', '1')).toBe(2);
    await s1.stop();
    await eventually('the other one leads', async () => s5.put('b', '1'));
    const asServer = await cluster.startServer('s6', cluster.flags([], cluster.server));
    expect(await asServer.put('c', '1')).toBeGreaterThan(2);
  });
});
