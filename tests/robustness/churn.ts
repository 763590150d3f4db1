import { setTimeout as delay } from 'node:timers/promises';
import { connect, type ClientHttp2Session, type ClientHttp2Stream } from 'node:http2';
import { etcdserverpb } from '@tenure/protocol';
import { encodeLeaseGrantRequest, encodeLeaseKeepAliveRequest, frameHeadroomBytes } from '@tenure/codec';
import { create, toBinary } from '@bufbuild/protobuf';
import { runFrameLoad } from '../../benchmarks/src/wire/frame-load.ts';
import { framed } from '../../conformance/client/http2-call.ts';
import { TestedServer } from './tested-server.ts';

const watchesPerStream = 500;
const streamsPerConnection = 2_000;
const leasesPerRound = 10_000;
const leaseTtlSeconds = 1_000_000;
/** The code with which a client cancels a stream. */
const cancelled = 8;
const settleMs = 60_000;
const pollMs = 20;
const gauges = [
  'tenure_watchers',
  'tenure_watch_streams',
  'tenure_leases_in_memory',
  'tenure_leases_checkpointed',
] as const;

/** Many clients that connect and disconnect. Afterwards the server must be as before. */
export class ComingsAndGoings {
  readonly #server: TestedServer;

  constructor(server: TestedServer) {
    this.#server = server;
  }

  /**
   * Watches of many kinds, 500 per stream. Half of the streams are cancelled, the others end with their connections.
   */
  async watches(count: number): Promise<void> {
    const session = await this.#connect();
    const streams: ClientHttp2Stream[] = [];
    for (let at = 0; at < count; at += watchesPerStream) {
      const requests = Array.from({ length: Math.min(watchesPerStream, count - at) }, (_, more) => watchOf(at + more));
      streams.push(openStream(session, '/etcdserverpb.Watch/Watch', Buffer.concat(requests)));
    }
    await this.#reach('tenure_watchers', count);
    streams.slice(0, streams.length / 2).forEach((stream) => stream.close(cancelled));
    await this.#server.kv.put({ key: Buffer.from('watched/1') });
    session.destroy();
    await this.#back();
  }

  /** Streams with one renewal each, all of the same lease; they end as the watches do. */
  async keepAliveStreams(count: number): Promise<void> {
    await this.#server.lease.leaseGrant({ ID: 1n, TTL: BigInt(leaseTtlSeconds) });
    const renewal = framed(encodeLeaseKeepAliveRequest(1n).subarray(frameHeadroomBytes));
    for (let opened = 0; opened < count; opened += streamsPerConnection) {
      const session = await this.#connect();
      const answered: Promise<unknown>[] = [];
      const streams = Array.from({ length: Math.min(streamsPerConnection, count - opened) }, () => {
        const stream = openStream(session, '/etcdserverpb.Lease/LeaseKeepAlive', renewal);
        answered.push(new Promise((resolve) => stream.once('data', resolve)));
        return stream;
      });
      await Promise.all(answered);
      streams.slice(0, streams.length / 2).forEach((stream) => stream.close(cancelled));
      session.destroy();
    }
    await this.#server.lease.leaseRevoke({ ID: 1n });
    await this.#back();
  }

  /** Leases that are all granted with a long TTL and then revoked, in rounds. */
  async leases(count: number): Promise<void> {
    for (let done = 0; done < count; done += leasesPerRound) {
      const first = done + 1;
      const requests = Math.min(leasesPerRound, count - done);
      await this.#load('LeaseGrant', requests, (at) => grantOf(first + at));
      await this.#reach('tenure_leases_in_memory', requests);
      await this.#load('LeaseRevoke', requests, (at) => revokeOf(first + at));
    }
    await this.#back();
  }

  #load(method: string, requests: number, requestOf: (index: number) => Buffer): Promise<unknown> {
    return runFrameLoad({
      address: this.#server.address,
      path: `/etcdserverpb.Lease/${method}`,
      requests,
      connections: 2,
      streamsPerConnection: 100,
      framedRequest: requestOf,
    });
  }

  async #connect(): Promise<ClientHttp2Session> {
    const session = connect(`http://${this.#server.address}`);
    await new Promise((resolve, reject) => session.once('connect', resolve).once('error', reject));
    return session;
  }

  async #reach(gauge: string, count: number): Promise<void> {
    const untilMs = performance.now() + settleMs;
    while ((await this.#server.metric(gauge)) !== count) {
      if (performance.now() > untilMs) throw new Error(`${gauge} did not reach ${count}`);
      await delay(pollMs);
    }
  }

  /** The server holds nothing for the disconnected clients. */
  async #back(): Promise<void> {
    for (const gauge of gauges) {
      const left = await this.#server.settled(gauge, 0, settleMs);
      if (left !== 0) throw new Error(`${gauge} is ${left} when all clients are gone`);
    }
  }
}

function openStream(session: ClientHttp2Session, path: string, sent: Buffer): ClientHttp2Stream {
  const stream = session.request(
    { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' },
    { endStream: false },
  );
  stream.on('error', () => {
    // It ends with its connection, as intended.
  });
  stream.resume();
  stream.write(sent);
  return stream;
}

function watchOf(index: number): Buffer {
  const key = Buffer.from(`watched/${index}`);
  const value = {
    key,
    rangeEnd: index % 3 === 0 ? Buffer.from('watched0') : Buffer.alloc(0),
    progressNotify: index % 5 === 0,
    prevKv: index % 7 === 0,
    fragment: index % 11 === 0,
  };
  const request = create(etcdserverpb.WatchRequestSchema, { requestUnion: { case: 'createRequest', value } });
  return framed(toBinary(etcdserverpb.WatchRequestSchema, request));
}

function grantOf(id: number): Buffer {
  const grant = { id: BigInt(id), ttlSeconds: leaseTtlSeconds, ttlMs: 0, label: '' };
  return framed(encodeLeaseGrantRequest(grant).subarray(frameHeadroomBytes));
}

function revokeOf(id: number): Buffer {
  const request = create(etcdserverpb.LeaseRevokeRequestSchema, { ID: BigInt(id) });
  return framed(toBinary(etcdserverpb.LeaseRevokeRequestSchema, request));
}
