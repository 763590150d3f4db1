import { Etcd3 } from 'etcd3';
import { Redis } from 'ioredis';
import { Mutex } from 'redis-semaphore';
import Redlock from 'redlock';
import { MeasuredServer } from '../servers/measured-server.ts';
import { RedisDatabase } from '../servers/redis-database.ts';
import { etcdKind } from '../servers/server-kinds.ts';
import { CallCounter } from './call-counter.ts';
import type { Locker, LockLibrary, LockStore } from './lock-library.ts';

const neverGiveUp = -1;

function onRedis(name: string, lockerOf: (client: Redis, ttlMs: number) => Omit<Locker, 'close'>): LockLibrary {
  return {
    name,
    store: 'Redis',
    counted: 'commands',
    async start(): Promise<LockStore> {
      const server = await RedisDatabase.start();
      const counter = new CallCounter();
      return {
        open: async ({ ttlMs }) => {
          const client = new Redis({ host: '127.0.0.1', port: server.port });
          counter.watch(client, ['sendCommand']);
          return { ...lockerOf(client, ttlMs), close: async () => client.disconnect() };
        },
        requests: async () => counter.calls,
        stop: () => server.stop(),
      };
    },
  };
}

/** The library renews nothing by itself, so this does, as its users do: each lock by a timer, as often as Tenure. */
const redlock = onRedis('redlock', (client, ttlMs) => {
  const locks = new Redlock([client], { retryCount: neverGiveUp });
  return {
    acquire: async (name) => {
      let lock = await locks.lock(name, ttlMs);
      let renewal: PromiseLike<unknown> = Promise.resolve();
      const timer = setInterval(() => {
        renewal = lock.extend(ttlMs).then((extended) => (lock = extended));
      }, ttlMs / 3);
      return {
        release: async () => {
          clearInterval(timer);
          await renewal;
          await lock.unlock();
        },
      };
    },
  };
});

const redisSemaphore = onRedis('redis-semaphore', (client, ttlMs) => ({
  acquire: async (name) => {
    const mutex = new Mutex(client, name, { lockTimeout: ttlMs, acquireTimeout: Infinity, refreshInterval: ttlMs / 3 });
    await mutex.acquire();
    return mutex;
  },
}));

/** Its lock does not wait, so the waiter and the holder campaign in an election. */
const etcd3: LockLibrary = {
  name: 'etcd3',
  store: 'etcd',
  counted: 'requests, and messages of streams',
  async start() {
    const server = await MeasuredServer.start(etcdKind);
    return {
      open: async ({ ttlMs }) => {
        const client = new Etcd3({ hosts: `http://${server.address}` });
        return {
          acquire: (name) =>
            client
              .lock(name)
              .ttl(ttlMs / 1000)
              .acquire(),
          acquireInLine: async (name) => {
            const campaign = client.election(name, ttlMs / 1000).campaign('me');
            await campaign.wait();
            return { release: () => campaign.resign() };
          },
          close: async () => client.close(),
        };
      },
      requests: () => messagesReceived(server.address),
      stop: () => server.close(),
    };
  },
};

/** As counted by etcd itself. */
async function messagesReceived(address: string): Promise<number> {
  const text = await (await fetch(`http://${address}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith('grpc_server_msg_received_total'));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

export const peerLibraries: readonly LockLibrary[] = [redlock, redisSemaphore, etcd3];
