import { fromBinary } from '@bufbuild/protobuf';
import { latin1FromBytes } from '@tenure/codec';
import { errorCatalogue, etcdserverpb } from '@tenure/protocol';
import type { NodeClock } from '@tenure/test-support';
import {
  CallError,
  type ClientConnection,
  type ClientStream,
  type ClientStreamListener,
} from '../world/client-connection.ts';
import type { Coverage } from '../world/coverage.ts';
import type { AccessChecker, AskedRequest, Identity, KeyRange, OpenWatch } from './access-checker.ts';
import { type Account, isForIdentity } from './account.ts';

export interface UserConnectionOptions {
  readonly connection: ClientConnection;
  readonly account: Account;
  readonly checker: AccessChecker;
  readonly coverage: Coverage;
  readonly clock: NodeClock;
}

const deniedText = errorCatalogue.PermissionDenied.text;
/** A client tries a watch that was refused again, on another connection. */
const watchAgainMs = 250;

/** A connection of a client that is a user: shows the client's token with each call, and tells the checker of all. */
export class UserConnection implements ClientConnection {
  readonly address: string;
  readonly #options: UserConnectionOptions;

  constructor(options: UserConnectionOptions) {
    this.#options = options;
    this.address = options.connection.address;
  }

  async call(path: string, request: Uint8Array, timeoutMs?: number): Promise<Uint8Array> {
    const { connection, account, checker } = this.#options;
    const by = account.identity;
    const asked = checker.asked(by, path, request);
    try {
      const reply = await connection.call(path, request, timeoutMs, by.token);
      if (asked !== undefined) checker.allowed(asked);
      return reply;
    } catch (error) {
      if (error instanceof CallError && error.fromServer) this.#refused(error.message, by, asked);
      throw error;
    }
  }

  open(path: string, listener: ClientStreamListener): ClientStream {
    const by = this.#options.account.identity;
    if (path === '/etcdserverpb.Lease/LeaseKeepAlive') return this.#openRenewals(path, listener, by);
    if (path === '/etcdserverpb.Watch/Watch') return this.#openWatches(path, listener, by);
    return this.#options.connection.open(path, listener, by.token);
  }

  close(): void {
    this.#options.connection.close();
  }

  #refused(text: string, by: Identity, asked: AskedRequest | undefined): void {
    const { account, checker, coverage } = this.#options;
    if (isForIdentity(text)) account.refused(text, by);
    if (!text.endsWith(deniedText) || asked === undefined) return;
    coverage.count('access: refused, permission denied');
    checker.denied(asked);
  }

  /** One lease each: the answers come in the order of the requests. */
  #openRenewals(path: string, listener: ClientStreamListener, by: Identity): ClientStream {
    const { connection, checker, coverage } = this.#options;
    const asked: (AskedRequest | undefined)[] = [];
    const onMessage = (message: Uint8Array): void => {
      const first = asked.shift();
      if (first !== undefined) checker.allowed(first);
      listener.onMessage(message);
    };
    const onEnd: ClientStreamListener['onEnd'] = (end) => {
      if (end.fromServer) {
        if (end.message === deniedText) coverage.count('access: a renewal was denied');
        this.#refused(end.message, by, asked[0]);
      }
      listener.onEnd(end);
    };
    const stream = connection.open(path, { onMessage, onEnd }, by.token);
    return {
      write: (message) => {
        asked.push(checker.asked(by, path, message));
        stream.write(message);
      },
      halfClose: () => stream.halfClose(),
      cancel: () => stream.cancel(),
    };
  }

  #openWatches(path: string, listener: ClientStreamListener, by: Identity): ClientStream {
    const { connection } = this.#options;
    const watches = new UserWatches(this.#options, by, (text, asked) => this.#refused(text, by, asked));
    const stream = connection.open(
      path,
      {
        onMessage: (message) => {
          if (watches.received(message)) listener.onMessage(message);
        },
        onEnd: (end) => {
          watches.ended();
          listener.onEnd(end);
        },
      },
      by.token,
    );
    return {
      write: (message) => {
        watches.written(message);
        stream.write(message);
      },
      halfClose: () => stream.halfClose(),
      cancel: () => stream.cancel(),
    };
  }
}

/** The watches of one stream. The client of the stream does not see refusals: the connection closes instead. */
class UserWatches {
  readonly #options: UserConnectionOptions;
  readonly #by: Identity;
  readonly #refused: (text: string, asked: AskedRequest) => void;
  /** Those without an answer, in order. */
  readonly #created: { readonly range: KeyRange; readonly asked: AskedRequest }[] = [];
  readonly #open = new Map<bigint, OpenWatch>();
  #isOver = false;

  constructor(options: UserConnectionOptions, by: Identity, refused: (text: string, asked: AskedRequest) => void) {
    this.#options = options;
    this.#by = by;
    this.#refused = refused;
  }

  written(message: Uint8Array): void {
    const { requestUnion } = fromBinary(etcdserverpb.WatchRequestSchema, message);
    if (requestUnion.case !== 'createRequest') return;
    const { key, rangeEnd } = requestUnion.value;
    const range = { key: latin1FromBytes(key), rangeEnd: latin1FromBytes(rangeEnd) };
    this.#created.push({ range, asked: this.#options.checker.askedToWatch(this.#by, range) });
  }

  /** Whether the client of the stream is to see the message. */
  received(message: Uint8Array): boolean {
    if (this.#isOver) return false;
    const { created, canceled, cancelReason, watchId, header, events } = fromBinary(
      etcdserverpb.WatchResponseSchema,
      message,
    );
    const { checker, coverage, connection } = this.#options;
    const revision = Number(header?.revision ?? 0n);
    if (created) return this.#answered(watchId, revision, canceled ? cancelReason : undefined);
    const watch = this.#open.get(watchId);
    if (watch === undefined) return true;
    if (events.length > 0) checker.sent(watch, revision);
    if (!canceled) return true;
    this.#open.delete(watchId);
    if (cancelReason !== deniedText) {
      checker.closed(watch);
      return true;
    }
    coverage.count('access: a watch was ended');
    checker.endedByPermission(watch);
    this.ended();
    connection.close();
    return false;
  }

  ended(): void {
    this.#isOver = true;
    for (const watch of this.#open.values()) this.#options.checker.closed(watch);
    this.#open.clear();
  }

  #answered(watchId: bigint, revision: number, refusal: string | undefined): boolean {
    const { checker, coverage, clock, connection } = this.#options;
    const first = this.#created.shift();
    if (first === undefined) return true;
    if (refusal === undefined) {
      checker.allowed(first.asked);
      this.#open.set(watchId, checker.opened(this.#by, first.range, revision));
      return true;
    }
    const isForAccess = isForIdentity(refusal) || refusal.endsWith(deniedText);
    if (!isForAccess) return true;
    coverage.count('access: a watch was refused');
    this.#refused(refusal, first.asked);
    clock.after(watchAgainMs, () => connection.close());
    return false;
  }
}
