import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ChildProgram, freePort, hasEtcd, ServeProcess } from '@tenure/test-support';
import { afterAll, expect, test } from 'vitest';

const folder = mkdtempSync(join(tmpdir(), 'tenure-whole-tls-'));
const programs: ChildProgram[] = [];
afterAll(async () => {
  for (const program of programs.reverse()) await program.end();
  rmSync(folder, { recursive: true, force: true });
});

const inFolder = (name: string): string => join(folder, name);
const pair = (name: string): [string, string] => [inFolder(`${name}.crt`), inFolder(`${name}.key`)];

/** An etcd that takes only clients with a certificate. */
async function startEtcd(): Promise<string> {
  const [client, peer] = [await freePort(), await freePort()];
  const [cert, key] = pair('etcd');
  const url = `https://127.0.0.1:${client}`;
  const peerUrl = `http://127.0.0.1:${peer}`;
  const args = [
    ...['--name', 'default', '--data-dir', inFolder('etcd-data'), '--log-level', 'warn'],
    ...['--listen-client-urls', url, '--advertise-client-urls', url, '--listen-peer-urls', peerUrl],
    ...['--initial-advertise-peer-urls', peerUrl, '--initial-cluster', `default=${peerUrl}`],
    ...['--cert-file', cert, '--key-file', key, '--trusted-ca-file', inFolder('ca.crt'), '--client-cert-auth'],
  ];
  programs.push(new ChildProgram({ program: 'etcd', args, env: { PATH: process.env['PATH'] ?? '' } }));
  return `127.0.0.1:${client}`;
}

async function etcdctl(endpoints: string, ...args: readonly string[]): Promise<string> {
  const [cert, key] = pair('client');
  const files = ['--cacert', inFolder('ca.crt'), '--cert', cert, '--key', key];
  const { stdout } = await promisify(execFile)('etcdctl', ['--endpoints', endpoints, ...files, ...args], {
    env: { ...process.env, ETCDCTL_API: '3' },
  });
  return stdout.trim();
}

test.runIf(hasEtcd())(
  'TLS everywhere, with the certificates of the script in examples',
  async () => {
    const script = join(import.meta.dirname, '../../examples/tls-cluster/make-certificates.sh');
    const names = ['s1', 's2', 's3'];
    execFileSync(script, [folder, 'etcd=127.0.0.1', ...names.map((name) => `${name}=127.0.0.1`)]);
    const engine = `etcd://${await startEtcd()}/tenure`;
    const ca = inFolder('ca.crt');
    const urls = await Promise.all(
      names.map(async (name) => {
        const url = `https://127.0.0.1:${await freePort()}`;
        const [cert, key] = pair(name);
        const server = new ServeProcess([
          ...['serve', '--name', name, '--engine', engine, '--listen-client-urls', url],
          ...['--cert-file', cert, '--key-file', key, '--trusted-ca-file', ca, '--client-cert-auth'],
          ...['--listen-peer-urls', 'https://127.0.0.1:0', '--peer-client-cert-auth'],
          ...['--peer-cert-allowed-cn', names.join()],
          ...['--peer-cert-file', cert, '--peer-key-file', key, '--peer-trusted-ca-file', ca],
          ...['--engine-cacert', ca, '--engine-cert', cert, '--engine-key', key],
        ]);
        programs.push(server);
        await server.ready();
        return url;
      }),
    );
    for (const url of urls) {
      expect(await etcdctl(url, 'put', url, 'written')).toBe('OK');
      expect(await etcdctl(urls.join(), 'get', url, '--print-value-only')).toBe('written');
    }
  },
  60_000,
);
