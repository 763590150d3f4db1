import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { parseEtcdAddress } from './etcd-address.ts';

describe('the address of an etcd', () => {
  test('names members, a prefix and a user', () => {
    assert.deepEqual(parseEtcdAddress('etcd://one:1,two,[::1]:3/team/a/'), {
      endpoints: ['one:1', 'two:2379', '[::1]:3'],
      prefix: '/team/a',
      credentials: undefined,
    });
    assert.deepEqual(parseEtcdAddress('etcd://ada:p%40ss%2Fword@one'), {
      endpoints: ['one:2379'],
      prefix: '/tenure',
      credentials: { user: 'ada', password: 'p@ss/word' },
    });
  });

  test('is refused when it is none', () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      ['http://one:1/x', /not of the form/],
      ['etcd://', /not of the form/],
      ['etcd:///x', /not of the form/],
      ['etcd://one/x?tls=true', /not of the form/],
      ['etcd://one,,two/x', /'' is no host:port/],
      ['etcd://one:99999/x', /'99999' is no port/],
      ['etcd://ada@one/x', /user:password/],
      ['etcd://one/%zz', /two hex digits/],
    ];
    for (const [url, message] of cases) {
      assert.throws(() => parseEtcdAddress(url), { name: 'EngineError', code: 'unusable', message });
    }
  });

  test('gives back any user and password, and never prints the password', () => {
    const words = fc.string({ minLength: 1, unit: 'grapheme' });
    fc.assert(
      fc.property(words, words, (user, password) => {
        const before = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`;
        assert.deepEqual(parseEtcdAddress(`etcd://${before}@one`).credentials, { user, password });
      }),
    );
    assert.throws(
      () => parseEtcdAddress('etcd://ada:hunter2@one:x/y'),
      (error: Error) => !error.message.includes('hunter2'),
    );
  });
});
