import { leaseReply, methods } from '../wire/etcd-messages.ts';
import { MessageStreams, whileOpen } from '../wire/message-streams.ts';

/** Concurrent renewals on the one stream; the next batch is sent when half of them were answered. */
const windowRenewals = 2000;
const timeoutMs = 300_000;

export interface RenewalLoadOptions {
  /** host:port. */
  readonly address: string;
  /** The leases have the ids from 1 to this. */
  readonly leases: number;
  /** The lease of renewal `index`. */
  readonly leaseOf: (index: number) => number;
  readonly renewals: number;
  readonly ttlSeconds: number;
}

/**
 * Renews leases over one stream, pipelined, and returns renewals per second. Each reply must name a lease with a
 * pending request, with its full TTL: a lost, duplicate or invented reply fails the run.
 */
export async function runRenewals(options: RenewalLoadOptions): Promise<number> {
  const { address, renewals } = options;
  const waiting = new Uint16Array(options.leases + 1);
  let sent = 0;
  let answered = 0;
  let finish: (error?: Error) => void = () => {};
  const done = new Promise<void>((resolve, reject) => {
    finish = (error) => (error === undefined ? resolve() : reject(error));
  });
  const onMessage = (_stream: number, message: Buffer): void => {
    const { id, ttlSeconds } = leaseReply(message);
    const asked = waiting[id] ?? 0;
    if (asked === 0) throw new Error(`lease ${id} was answered without a renewal on its way`);
    if (ttlSeconds !== options.ttlSeconds) throw new Error(`lease ${id} came back with a TTL of ${ttlSeconds} s`);
    waiting[id] = asked - 1;
    answered += 1;
    if (answered === renewals) finish();
    else if (sent - answered <= windowRenewals / 2) sendMore();
  };
  const connection = await MessageStreams.open({ address, path: methods.leaseKeepAlive, streams: 1, onMessage });
  const sendMore = (): void => {
    const batch: Buffer[] = [];
    while (sent < renewals && sent - answered < windowRenewals) {
      const id = options.leaseOf(sent);
      sent += 1;
      waiting[id] = (waiting[id] ?? 0) + 1;
      batch.push(framedRenewal(id));
    }
    if (batch.length > 0) connection.send(0, Buffer.concat(batch));
  };
  const timer = setTimeout(() => finish(new Error(`${answered} of ${sent} renewals were answered in time`)), timeoutMs);
  const startedMs = performance.now();
  try {
    sendMore();
    connection.flush();
    await whileOpen([connection], done);
    return renewals / ((performance.now() - startedMs) / 1000);
  } finally {
    clearTimeout(timer);
    connection.close();
  }
}

/** A framed renewal, encoded by hand: the client's work must be small compared to the server's. */
export function framedRenewal(id: number): Buffer {
  let bytes = 1;
  for (let rest = id; rest >= 128; rest = Math.floor(rest / 128)) bytes += 1;
  const framed = Buffer.allocUnsafe(6 + bytes);
  framed.writeUIntBE(0, 0, 4);
  framed[4] = 1 + bytes;
  framed[5] = 8;
  let rest = id;
  for (let at = 6; at < framed.length; at += 1) {
    framed[at] = at === framed.length - 1 ? rest : (rest % 128) + 128;
    rest = Math.floor(rest / 128);
  }
  return framed;
}
