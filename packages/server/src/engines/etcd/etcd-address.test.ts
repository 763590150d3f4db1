import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseEtcdAddress } from './etcd-address.ts';

describe('the address of an etcd', () => {
  test('names members, a prefix and a user', () => {
    expect(parseEtcdAddress('etcd://one:1,two,[::1]:3/team/a/')).toEqual({
      endpoints: ['one:1', 'two:2379', '[::1]:3'],
      prefix: '/team/a',
      credentials: undefined,
    });
    expect(parseEtcdAddress('etcd://ada:p%40ss%2Fword@one')).toEqual({
      endpoints: ['one:2379'],
      prefix: '/tenure',
      credentials: { user: 'ada', password: 'p@ss/word' },
    });
  });

  test('is refused when it is invalid', () => {
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
      expect(() => parseEtcdAddress(url)).toThrow(
        expect.objectContaining({ name: 'EngineError', code: 'unusable', message: expect.stringMatching(message) }),
      );
    }
  });

  test('preserves any user and password, and never prints the password', () => {
    const words = fc.string({ minLength: 1, unit: 'grapheme' });
    fc.assert(
      fc.property(words, words, (user, password) => {
        const before = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`;
        expect(parseEtcdAddress(`etcd://${before}@one`).credentials).toEqual({ user, password });
      }),
    );
    const withoutPassword = expect.objectContaining({ message: expect.not.stringContaining('hunter2') });
    expect(() => parseEtcdAddress('etcd://ada:hunter2@one:x/y')).toThrow(withoutPassword);
  });
});
