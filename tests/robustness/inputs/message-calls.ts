import { type RpcMethod, rpcMethods } from '@tenure/protocol';
import { encodeTxnRequest, frameHeadroomBytes } from '@tenure/codec';
import { type RequestOp } from '@tenure/core';
import { bytesField } from '../../../conformance/client/raw-message.ts';
import { SeededRandom } from '@tenure/test-support';
import { type Existing, mayChange } from './effect.ts';
import { MessageSoup } from './message-soup.ts';

/** One call with its messages; more than one message only where the client streams. */
export interface MessageCall {
  readonly method: RpcMethod;
  readonly messages: readonly Buffer[];
}

export interface MessageCallOptions {
  readonly seed: number;
  readonly existing: Existing;
  /** Whether to include requests that change something. Alarms are never activated or deactivated. */
  readonly changes: boolean;
}

/** Methods that are called more often than others, because they are more complex. */
const weights: Readonly<Record<string, number>> = {
  '/etcdserverpb.KV/Range': 12,
  '/etcdserverpb.KV/Put': 12,
  '/etcdserverpb.KV/DeleteRange': 8,
  '/etcdserverpb.KV/Txn': 20,
  '/etcdserverpb.KV/Compact': 4,
  '/etcdserverpb.Watch/Watch': 4,
  '/etcdserverpb.Lease/LeaseGrant': 8,
  '/etcdserverpb.Lease/LeaseRevoke': 4,
  '/etcdserverpb.Lease/LeaseKeepAlive': 3,
  '/etcdserverpb.Lease/LeaseTimeToLive': 4,
};
const maxStreamedMessages = 40;
/** A stream of watches does not end by itself; an undecodable message ends it. */
const unreadable = Buffer.of(0xff, 0xff, 0xff);
const maxTries = 50;

/** An endless sequence of calls: the same for the same seed, independent of the server's answers. */
export class MessageCalls {
  readonly #random: SeededRandom;
  readonly #soup: MessageSoup;
  readonly #options: MessageCallOptions;
  readonly #methods: readonly RpcMethod[];

  constructor(options: MessageCallOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
    this.#soup = new MessageSoup(this.#random, {
      keys: [...options.existing.keys, 'key/new', 'none'].map((key) => Buffer.from(key, 'latin1')),
      leases: [...options.existing.leases, 0n, 424_242n],
    });
    this.#methods = [...rpcMethods.values()].flatMap((method) => {
      return Array.from({ length: weights[method.path] ?? 1 }, () => method);
    });
  }

  next(): MessageCall {
    const method = this.#random.pick(this.#methods);
    if (method.kind !== 'bidi') return { method, messages: [this.#request(method)] };
    const count = this.#random.integer(1, maxStreamedMessages);
    const messages = Array.from({ length: count }, () => this.#request(method));
    return { method, messages: method.path === '/etcdserverpb.Watch/Watch' ? [...messages, unreadable] : messages };
  }

  /** Draws until a request is allowed; nearly always one of the first few is. */
  #request(method: RpcMethod): Buffer {
    for (let tries = 0; tries < maxTries; tries += 1) {
      const request = this.#draw(method);
      if (this.#isAllowed(method, request)) return request;
    }
    return unreadable;
  }

  #isAllowed(method: RpcMethod, request: Buffer): boolean {
    const { changes, existing } = this.#options;
    if (changes && method.path !== '/etcdserverpb.Maintenance/Alarm') return true;
    return !mayChange(method, request, existing);
  }

  #draw(method: RpcMethod): Buffer {
    if (method.path === '/etcdserverpb.KV/Txn' && this.#random.chance(0.1)) return this.#monstrousTxn();
    const sound = this.#soup.message(method.descriptor.input);
    return this.#random.chance(0.4) ? this.#random.damage(sound) : sound;
  }

  /** Nested deeper, or longer, than the limits of a transaction, or exactly at them. */
  #monstrousTxn(): Buffer {
    const key = this.#random.pick(['', 'key/new']);
    if (this.#random.chance(0.5)) {
      const levels = this.#random.pick([127, 128, 129, 200, 3_000]);
      let message: Uint8Array = bytesField(2, bytesField(1, bytesField(1, Buffer.from(key))));
      for (let level = 1; level < levels; level += 1) message = bytesField(2, bytesField(4, message));
      return Buffer.from(message);
    }
    const rest = { rangeEnd: '', prevKv: true };
    const op: RequestOp = { kind: 'deleteRange', deleteRange: { key, ...rest } };
    const success = Array.from({ length: this.#random.pick([127, 128, 129, 2_000]) }, () => op);
    return encodeTxnRequest({ compare: [], success, failure: success }).subarray(frameHeadroomBytes);
  }
}
