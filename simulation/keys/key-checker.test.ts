import { errorCatalogue } from '@tenure/protocol';
import { describe, expect, test } from 'vitest';
import { CallError, type ClientConnection } from '../world/client-connection.ts';
import { KeyChecker } from './key-checker.ts';
import type { KeyReply } from './key-reply.ts';
import type { KeyRequest } from './key-request.ts';
import { deleteOf, grantOf, putOf, putsOf, TestLog } from './testing/test-log.ts';
import { rangeRequest } from '../../packages/core/src/testing/requests.ts';

function connectionTo(address: string): ClientConnection {
  const refuse = (): never => {
    throw new Error('no call is made here');
  };
  return { address, call: refuse, open: refuse, close: () => {} };
}

/** A checker, and the outcomes of requests as a test invents them. */
class Case {
  nowMs = 0;
  readonly checker = new KeyChecker(() => this.nowMs);
  readonly log = new TestLog((entry) => this.checker.committed(entry));
  readonly connection = connectionTo('a server');

  sent(request: KeyRequest, connection = this.connection) {
    this.nowMs += 1;
    return this.checker.sent(1, request, connection);
  }

  /** The request is sent, in the log, and answered. */
  write(
    request: Exclude<KeyRequest, { kind: 'range' | 'leaseKeys' }>,
    revision: number,
    reply: Partial<KeyReply> = {},
  ) {
    const sent = this.sent(request);
    this.log.append(request);
    this.nowMs += 1;
    const { response } = this.checker.oracle.requestTagged(sent.tag ?? '') ?? {};
    const result = (response ?? { kind: request.kind }) as KeyReply['result'];
    this.checker.answered(sent, { revision, result, ...reply });
  }

  read(request: KeyRequest, revision: number, value?: string, connection = this.connection): void {
    const sent = this.sent(request, connection);
    this.nowMs += 1;
    const kv = this.checker.oracle.rangeAt(Math.min(revision, this.checker.oracle.currentRevision), rangeRequest('p/0'))
      .kvs[0];
    const kvs = kv === undefined ? [] : [{ ...kv, value: value ?? kv.value }];
    this.checker.answered(sent, {
      revision,
      result: { kind: 'range', range: { kvs, more: false, count: kvs.length } },
    });
  }

  refuse(request: KeyRequest, name: 'LeaderChanged' | 'Timeout' | 'LeaseNotFound', isLogged: boolean): void {
    const sent = this.sent(request);
    if (isLogged && request.kind === 'put') this.log.append(request);
    const { code, text } = errorCatalogue[name];
    this.checker.failed(sent, new CallError({ code, message: text }, true));
  }

  finish(): string {
    this.checker.finish();
    return this.checker.violations.join('\n');
  }
}

const get: KeyRequest = { kind: 'range', range: rangeRequest('p/0') };
const serializable: KeyRequest = { kind: 'range', range: { ...rangeRequest('p/0'), serializable: true } };

test('a history that follows the log has no violation', () => {
  const one = new Case();
  one.write(putOf('1.1', 'p/0'), 2);
  one.read(get, 2);
  one.write(deleteOf('1.2', 'p/0'), 3);
  one.read(get, 3);
  one.write(grantOf(7n), 3);
  one.write(putOf('1.3', 'm/0', 7n), 4);
  const keys = one.sent({ kind: 'leaseKeys', id: 7n });
  one.checker.answered(keys, { revision: 4, result: { kind: 'leaseKeys', exists: true, keys: ['m/0'] } });
  one.write(putsOf('1.4', ['p/0', 'p/1']), 5);
  one.refuse(putOf('1.5', 'p/0'), 'Timeout', true);
  one.refuse(putOf('1.6', 'p/0'), 'Timeout', false);
  one.refuse(putOf('1.7', 'm/0', 9n), 'LeaseNotFound', true);
  one.refuse(putOf('1.8', 'p/0'), 'LeaderChanged', false);
  one.read(get, 6);
  // A serializable read may be old, on a connection that has told nothing newer.
  one.read(serializable, 2, undefined, connectionTo('a follower'));
  expect(one.finish()).toBe('');
});

describe('a violation is', () => {
  test.each<[what: string, rule: RegExp, history: (one: Case) => void]>([
    [
      'an acknowledged write that is not in the log',
      /^A1 .* not in the log/,
      (one) => {
        const sent = one.sent(putOf('1.1', 'p/0'));
        one.checker.answered(sent, { revision: 1, result: { kind: 'put', put: { prevKv: undefined } } });
      },
    ],
    [
      'a write that took effect twice',
      /^A1 .* twice/,
      (one) => {
        one.write(putOf('1.1', 'p/0'), 2);
        one.log.append(putOf('1.1', 'p/0'));
      },
    ],
    [
      'an unknown write that took effect twice',
      /^A1 .* twice/,
      (one) => {
        one.refuse(putOf('1.1', 'p/0'), 'Timeout', true);
        one.log.append(putOf('1.1', 'p/0'));
      },
    ],
    [
      'a write refused as not done that was done',
      /^A1 .* refused/,
      (one) => one.refuse(putOf('1.1', 'p/0'), 'LeaderChanged', true),
    ],
    [
      'a write refused as not done that is done later',
      /^A1 .* after it had been refused/,
      (one) => {
        one.refuse(putOf('1.1', 'p/0'), 'LeaderChanged', false);
        one.log.append(putOf('1.1', 'p/0'));
      },
    ],
    [
      'a refusal with another error than that of the log',
      /^A1 .* LeaseNotFound|^A1 .* not found/,
      (one) => one.refuse(putOf('1.1', 'p/0'), 'LeaseNotFound', true),
    ],
    [
      'a compaction that is not in the log',
      /^A1 .* not in the log/,
      (one) =>
        one.checker.answered(one.sent({ kind: 'compact', revision: 1 }), { revision: 1, result: { kind: 'compact' } }),
    ],
    ['a write at another revision', /^A4 .* in the log at 2/, (one) => one.write(putOf('1.1', 'p/0'), 1)],
    ['a read that is not durable', /^A4 .* not durable/, (one) => one.read(get, 2)],
    [
      'a read of another value',
      /^A4 .* by the log/,
      (one) => {
        one.write(putOf('1.1', 'p/0'), 2);
        one.read(get, 2, 'another');
      },
    ],
    [
      'a serializable read of another value',
      /^A4 .* by the log/,
      (one) => {
        one.write(putOf('1.1', 'p/0'), 2);
        one.read(serializable, 2, 'another');
      },
    ],
    [
      'a previous value that is wrong',
      /^A4 .* answered previous/,
      (one) => {
        one.write(putOf('1.1', 'p/0'), 2);
        one.write(putOf('1.2', 'p/0'), 3, { result: { kind: 'put', put: { prevKv: undefined } } });
      },
    ],
    [
      'a linearizable read that is stale',
      /^A5 .* revision 1 after 2/,
      (one) => {
        one.write(putOf('1.1', 'p/0'), 2);
        one.read(get, 1, undefined, connectionTo('a follower'));
      },
    ],
    [
      'a stale read, for the check that trusts no revision',
      /^A4 .* p\/0 is not linearizable/m,
      (one) => {
        one.write(putOf('1.1', 'p/0'), 2);
        one.read(get, 1, undefined, connectionTo('a follower'));
      },
    ],
    [
      'a connection that goes back',
      /^A2 .* revision 1 after 2/,
      (one) => {
        one.write(putOf('1.1', 'p/0'), 2);
        one.read(serializable, 1);
      },
    ],
    [
      'a compacted revision that is read',
      /^A4 .* read though compacted/,
      (one) => {
        one.write(putOf('1.1', 'p/0'), 2);
        one.write(putOf('1.2', 'p/0'), 3);
        one.write({ kind: 'compact', revision: 3 }, 3);
        one.read({ kind: 'range', range: { ...rangeRequest('p/0'), revision: 2 } }, 3);
      },
    ],
    [
      'a revision refused as compacted that is not',
      /^A4 .* refused as compacted/,
      (one) => {
        const { code, text: message } = errorCatalogue.Compacted;
        const sent = one.sent({ kind: 'range', range: { ...rangeRequest('p/0'), revision: 1 } });
        one.checker.failed(sent, new CallError({ code, message }, true));
      },
    ],
    [
      'an attached key that a server does not know',
      /^L5 /,
      (one) => {
        one.write(grantOf(7n), 1);
        one.write(putOf('1.1', 'm/0', 7n), 2);
        const sent = one.sent({ kind: 'leaseKeys', id: 7n });
        one.checker.answered(sent, { revision: 2, result: { kind: 'leaseKeys', exists: true, keys: [] } });
      },
    ],
    [
      'a key that a server still attaches to its former lease',
      /^L5 /,
      (one) => {
        one.write(grantOf(7n), 1);
        one.write(putOf('1.1', 'm/0', 7n), 2);
        one.write(putOf('1.2', 'm/0'), 3);
        const sent = one.sent({ kind: 'leaseKeys', id: 7n });
        one.checker.answered(sent, { revision: 3, result: { kind: 'leaseKeys', exists: true, keys: ['m/0'] } });
      },
    ],
    [
      'an internal error',
      /^A1 .* answered with 13/,
      (one) => one.checker.failed(one.sent(get), new CallError({ code: 13, message: 'a bug' }, true)),
    ],
  ])('%s', (_, rule, history) => {
    const one = new Case();
    history(one);
    expect(one.finish()).toMatch(rule);
  });
});
