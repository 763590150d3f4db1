import { setTimeout as delay } from 'node:timers/promises';
import { etcdserverpb, mvccpb, v3electionpb, v3lockpb } from '@tenure/protocol';
import { GrpcClient, type Metadata } from '../client/grpc-client.ts';
import { KeepAliveStream } from '../client/keep-alive-stream.ts';
import { ObserveStream } from '../client/observe-stream.ts';
import { serviceCalls } from '../client/service-calls.ts';
import { WatchStream } from '../client/watch-stream.ts';
import type { RunningServer } from '../servers/server-options.ts';
import { bytes, prefixEnd, textOf } from './bytes.ts';

const ampleTtlSeconds = 600n;
const pollIntervalMs = 20;
const pollPatienceMs = 30_000;

/**
 * The context of one case: a connection, and a part of the key space that no other case uses. The metadata goes with
 * every call, so a context can be that of a user.
 */
export class CaseContext {
  readonly server: RunningServer;
  readonly client: GrpcClient;
  readonly kv;
  readonly lease;
  readonly maintenance;
  readonly cluster;
  readonly auth;
  readonly lock;
  readonly election;
  readonly #prefix: string;
  readonly #cleanups: (() => Promise<unknown> | void)[] = [];

  constructor(server: RunningServer, prefix: string, metadata: Metadata = {}) {
    this.server = server;
    this.#prefix = prefix;
    this.client = new GrpcClient(server.address, {}, metadata);
    this.kv = serviceCalls(this.client, etcdserverpb.KV);
    this.lease = serviceCalls(this.client, etcdserverpb.Lease);
    this.maintenance = serviceCalls(this.client, etcdserverpb.Maintenance);
    this.cluster = serviceCalls(this.client, etcdserverpb.Cluster);
    this.auth = serviceCalls(this.client, etcdserverpb.Auth);
    this.lock = serviceCalls(this.client, v3lockpb.Lock);
    this.election = serviceCalls(this.client, v3electionpb.Election);
  }

  /** The same case for another caller: with another token, or with none. */
  as(metadata: Metadata): CaseContext {
    const other = new CaseContext(this.server, this.#prefix, metadata);
    this.cleanUp(async () => {
      await other.#cleanUpAll();
      other.client.close();
    });
    return other;
  }

  /** A key of this case's own. */
  key(name: string): Uint8Array<ArrayBuffer> {
    return bytes(this.#prefix + name);
  }

  /** The range of all keys of this case, or of those that begin with `name`. */
  all(name = ''): { key: Uint8Array<ArrayBuffer>; rangeEnd: Uint8Array<ArrayBuffer> } {
    const key = this.key(name);
    return { key, rangeEnd: prefixEnd(key) };
  }

  /** The name a key was made from; throws for a key of another case. */
  nameOf(key: Uint8Array): string {
    const text = textOf(key);
    if (!text.startsWith(this.#prefix)) throw new Error(`'${text}' is not a key of this case`);
    return text.slice(this.#prefix.length);
  }

  /** 'a=1' for each. */
  pairs(kvs: readonly mvccpb.KeyValue[]): string[] {
    return kvs.map((kv) => `${this.nameOf(kv.key)}=${textOf(kv.value)}`);
  }

  /** 'PUT a=1 +2' or 'DELETE a +3' for each, the revision as its distance from `base`. */
  events(events: readonly mvccpb.Event[], base: bigint): string[] {
    return events.map(({ type, kv }) => {
      if (kv === undefined) throw new Error('an event without a key came');
      const name = this.nameOf(kv.key);
      const what = type === mvccpb.Event_EventType.DELETE ? `DELETE ${name}` : `PUT ${name}=${textOf(kv.value)}`;
      return `${what} +${kv.modRevision - base}`;
    });
  }

  /** Puts, one after the other, and returns the revision of the last. */
  async put(name: string, value = '', lease = 0n): Promise<bigint> {
    const reply = await this.kv.put({ key: this.key(name), value: bytes(value), lease });
    return revisionOf(reply);
  }

  async delete(name: string): Promise<bigint> {
    return revisionOf(await this.kv.deleteRange({ key: this.key(name) }));
  }

  /** The key as it is now, or was at a revision; undefined when it did not exist. */
  async get(name: string, revision = 0n): Promise<mvccpb.KeyValue | undefined> {
    return (await this.kv.range({ key: this.key(name), revision })).kvs[0];
  }

  /** The store's revision now. */
  async revision(): Promise<bigint> {
    return revisionOf(await this.kv.range({ key: this.key('no such key') }));
  }

  /** A lease of this case's own, gone when the case ends. */
  async grant(ttlSeconds = ampleTtlSeconds, id = 0n): Promise<bigint> {
    const { ID } = await this.lease.leaseGrant({ TTL: ttlSeconds, ID: id });
    this.cleanUp(() => this.lease.leaseRevoke({ ID }).catch(() => undefined));
    return ID;
  }

  /** The lease's time to live; -1 when it does not exist. */
  async ttlOf(id: bigint): Promise<bigint> {
    return (await this.lease.leaseTimeToLive({ ID: id })).TTL;
  }

  /** Polls the server until the condition holds; throws when it does not in time. */
  async until(what: string, condition: () => Promise<boolean>): Promise<void> {
    const deadline = performance.now() + pollPatienceMs;
    while (!(await condition())) {
      if (performance.now() > deadline) throw new Error(`waited ${pollPatienceMs} ms without success until ${what}`);
      await delay(pollIntervalMs);
    }
  }

  watchStream(): WatchStream {
    const stream = new WatchStream(this.client);
    this.cleanUp(() => stream.close());
    return stream;
  }

  keepAliveStream(): KeepAliveStream {
    const stream = new KeepAliveStream(this.client);
    this.cleanUp(() => stream.close());
    return stream;
  }

  /** Observes the leaders of an election of this case's own. */
  observe(name: string): ObserveStream {
    const stream = new ObserveStream(this.client, this.key(name));
    this.cleanUp(() => stream.close());
    return stream;
  }

  cleanUp(action: () => Promise<unknown> | void): void {
    this.#cleanups.push(action);
  }

  async close(): Promise<void> {
    await this.#cleanUpAll();
    await this.#revokeWhatIsLeft();
    this.client.close();
  }

  async #cleanUpAll(): Promise<void> {
    for (const action of this.#cleanups.reverse()) await action();
  }

  /** A lease left by this case would expire, at a separate revision, while the next case compares revisions. */
  async #revokeWhatIsLeft(): Promise<void> {
    const { leases } = await this.lease.leaseLeases({}).catch(() => ({ leases: [] }));
    await Promise.all(leases.map(({ ID }) => this.lease.leaseRevoke({ ID }).catch(() => undefined)));
  }
}

/** The store's revision in a reply. */
export function revisionOf(reply: { header?: etcdserverpb.ResponseHeader | undefined }): bigint {
  if (reply.header === undefined) throw new Error('the reply has no header');
  return reply.header.revision;
}
