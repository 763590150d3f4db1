import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { builtCommand, type Command, freePorts, TestAuthority } from '@tenure/test-support';
import { answers } from '../servers/answers.ts';
import { etcdPeer } from '../servers/etcd-peer.ts';
import { MeasuredProcess } from '../servers/measured-process.ts';
import { GrpcConnection } from '../wire/grpc-connection.ts';
import { bytesOf, MessageWriter } from '../wire/protobuf.ts';

const authPath = '/etcdserverpb.Auth/';

interface Listening {
  readonly dataDir: string;
  readonly plainUrl: string;
  readonly tlsUrl: string;
  readonly peerUrl: string;
  readonly certificate: readonly string[];
}

/** One of the compared systems, durable and with its defaults, without TLS and with it on two ports. */
export const commands = {
  etcd: ({ dataDir, plainUrl, tlsUrl, peerUrl, certificate }: Listening): Command => ({
    program: etcdPeer().program,
    args: [
      ...['--name', 'bench', '--data-dir', dataDir, '--log-level', 'error', ...certificate],
      ...['--listen-client-urls', `${plainUrl},${tlsUrl}`, '--advertise-client-urls', plainUrl],
      ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl],
      ...['--initial-cluster', `bench=${peerUrl}`, '--quota-backend-bytes', String(8 * 1024 ** 3)],
    ],
  }),
  Tenure: ({ dataDir, plainUrl, tlsUrl, certificate }: Listening): Command => ({
    program: process.execPath,
    args: [
      ...[builtCommand, 'serve', '--engine', 'file', '--data-dir', dataDir, '--log-level', 'error', ...certificate],
      ...['--listen-client-urls', `${plainUrl},${tlsUrl}`, '--advertise-client-urls', plainUrl],
    ],
  }),
} as const;

/** A server that is reached with and without TLS, and at which authentication can be enabled. */
export class SecuredServer {
  readonly #folder: string;
  readonly #process: MeasuredProcess;
  readonly plain: string;
  readonly tls: string;

  private constructor(folder: string, running: MeasuredProcess, plain: string, tls: string) {
    this.#folder = folder;
    this.#process = running;
    this.plain = plain;
    this.tls = tls;
  }

  static async start(name: keyof typeof commands): Promise<SecuredServer> {
    const folder = mkdtempSync(join(tmpdir(), 'tenure-bench-secured-'));
    const [plainPort = 0, tlsPort = 0, peerPort = 0] = await freePorts(3);
    const { certFile, keyFile } = new TestAuthority(folder).issue('bench');
    const command = commands[name]({
      dataDir: join(folder, 'data'),
      plainUrl: `http://127.0.0.1:${plainPort}`,
      tlsUrl: `https://127.0.0.1:${tlsPort}`,
      peerUrl: `http://127.0.0.1:${peerPort}`,
      certificate: ['--cert-file', certFile, '--key-file', keyFile],
    });
    const plain = `127.0.0.1:${plainPort}`;
    const running = await MeasuredProcess.start(command, () => answers(plain));
    return new SecuredServer(folder, running, plain, `127.0.0.1:${tlsPort}`);
  }

  cpuMs(): number {
    return this.#process.cpuMs();
  }

  /** Enables authentication, with a user who may read and write all keys from 'k' to 'l', and returns its token. */
  async enableAuth(): Promise<string> {
    const connection = await GrpcConnection.open(this.plain);
    const call = (method: string, message: MessageWriter): Promise<Buffer> =>
      connection.unary(`${authPath}${method}`, message.finish());
    const named = (name: string): MessageWriter => new MessageWriter().bytes(1, name);
    const permission = new MessageWriter().varint(1, 2).bytes(2, 'k').bytes(3, 'l').finish();
    try {
      await call('UserAdd', named('root').bytes(2, 'root'));
      await call('UserGrantRole', named('root').bytes(2, 'root'));
      await call('UserAdd', named('bench').bytes(2, 'bench'));
      await call('RoleAdd', named('bench'));
      await call('RoleGrantPermission', named('bench').bytes(2, permission));
      await call('UserGrantRole', named('bench').bytes(2, 'bench'));
      await call('AuthEnable', new MessageWriter());
      return bytesOf(await call('Authenticate', named('bench').bytes(2, 'bench')), 2).toString();
    } finally {
      connection.close();
    }
  }

  async close(): Promise<void> {
    await this.#process.end();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
