import { leaseReply, methods } from '../wire/etcd-messages.ts';
import { MessageStreams, whileOpen } from '../wire/message-streams.ts';
import { framedRenewal } from './renewal-load.ts';

export interface RenewalStreamsOptions {
  readonly address: string;
  /** Each with a connection, a stream and a lease of its own: the leases have the ids from 1 to this. */
  readonly clients: number;
  readonly renewals: number;
  readonly ttlSeconds: number;
}

/** Clients that each renew one lease again and again, after the reply to the renewal before; renewals per second. */
export async function runRenewalStreams(options: RenewalStreamsOptions): Promise<number> {
  const { address, clients, renewals, ttlSeconds } = options;
  let sent = 0;
  let answered = 0;
  let allAnswered = (): void => {};
  const done = new Promise<void>((resolve) => (allAnswered = resolve));
  const connections: MessageStreams[] = [];
  const renewNext = (client: number): void => {
    if (sent === renewals) return;
    sent += 1;
    connections[client]?.send(0, framedRenewal(client + 1));
  };
  const onReply = (client: number, message: Buffer): void => {
    const { id, ttlSeconds: granted } = leaseReply(message);
    if (id !== client + 1 || granted !== ttlSeconds) {
      throw new Error(`lease ${client + 1} was answered with lease ${id} of ${granted} s`);
    }
    answered += 1;
    if (answered === renewals) allAnswered();
    else renewNext(client);
  };
  try {
    for (let client = 0; client < clients; client += 1) {
      const onMessage = (_stream: number, message: Buffer) => onReply(client, message);
      connections.push(await MessageStreams.open({ address, path: methods.leaseKeepAlive, streams: 1, onMessage }));
    }
    const startedMs = performance.now();
    for (const [client, connection] of connections.entries()) {
      renewNext(client);
      connection.flush();
    }
    await whileOpen(connections, done);
    return renewals / ((performance.now() - startedMs) / 1000);
  } finally {
    for (const connection of connections) connection.close();
  }
}
