import { create, toBinary } from '@bufbuild/protobuf';
import { GrpcCallError, GrpcCode } from '@tenure/grpc-client';
import type { GrpcMetadata } from '@tenure/grpc-client';
import { etcdserverpb } from '@tenure/protocol';
import { expect, test } from 'vitest';
import type { RpcChannel } from './etcd-channel.ts';
import { EtcdConnection } from './etcd-connection.ts';

interface Sent {
  readonly token: unknown;
  readonly answer: () => void;
  readonly refuse: () => void;
}

/** A connection to a server that accepts every login, whose other calls the test answers. */
function connected() {
  const sent: Sent[] = [];
  let logins = 0;
  const login = async (): Promise<Buffer> => {
    const { output } = etcdserverpb.Auth.method.authenticate;
    return Buffer.from(toBinary(output, create(output, { token: `token ${++logins}` })));
  };
  const call = ({ token }: GrpcMetadata): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      const stale = new GrpcCallError(GrpcCode.unauthenticated, 'etcdserver: invalid auth token', { wasSent: true });
      sent.push({ token, answer: () => resolve(Buffer.alloc(0)), refuse: () => reject(stale) });
    });
  const channel: RpcChannel = {
    address: 'here:1',
    problem: '',
    connect: async () => true,
    unary: (path, _request, _timeoutMs, metadata) => ({
      reply: path.endsWith('/Authenticate') ? login() : call(metadata),
      cancel: () => undefined,
    }),
    stream: () => ({}) as ReturnType<RpcChannel['stream']>,
    reconnect: () => undefined,
    close: () => undefined,
  };
  const options = { endpoints: 'here:1', user: 'ada', password: 'secret' };
  const connection = new EtcdConnection(options, undefined, () => channel);
  return { connection, sent, logins: () => logins };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('calls and streams whose token has ended log in once, however late each is refused', async () => {
  const { connection, sent, logins } = connected();
  const { range } = etcdserverpb.KV.method;
  const reads = Array.from({ length: 8 }, () => connection.read(range, {}));
  await turn();
  const streams = await Promise.all([1, 2].map(() => connection.stream('/a/b', { unref: true })));
  expect([sent.length, logins()]).toEqual([8, 1]);
  for (const { refuse } of sent.slice(0, 8)) {
    refuse();
    await turn();
  }
  expect(logins()).toBe(2);
  for (const { abandon } of streams) abandon();
  await connection.stream('/a/b', { unref: true });
  expect(logins()).toBe(2);
  expect(sent.slice(8).map(({ token }) => token)).toEqual(Array(8).fill('token 2'));
  for (const { answer } of sent) answer();
  await Promise.all(reads);
  connection.close();
});

test('a call to one server with a token that has ended is repeated once with a new one', async () => {
  const { connection, sent } = connected();
  const { status } = etcdserverpb.Maintenance.method;
  const first = connection.readAt(0, status, {});
  await turn();
  sent[0]?.refuse();
  await turn();
  sent[1]?.answer();
  await first;
  const second = connection.readAt(0, status, {});
  for (const at of [2, 3]) {
    await turn();
    sent[at]?.refuse();
  }
  await expect(second).rejects.toMatchObject({ details: 'etcdserver: invalid auth token' });
  expect(sent.map(({ token }) => token)).toEqual(['token 1', 'token 2', 'token 2', 'token 3']);
  connection.close();
});
