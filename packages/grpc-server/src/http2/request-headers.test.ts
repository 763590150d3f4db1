import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RequestHeaders } from './request-headers.ts';

type Pair = readonly [name: string, value: string];

const pseudo: readonly Pair[] = [
  [':method', 'POST'],
  [':scheme', 'http'],
  [':path', '/t.T/Any'],
  [':authority', 'localhost:2379'],
];

function read(pairs: readonly Pair[], areTrailers = false): RequestHeaders {
  const headers = new RequestHeaders(areTrailers);
  for (const [name, value] of pairs) headers.add(name, value);
  headers.finish();
  return headers;
}

const faultOf = (...more: readonly Pair[]): string | undefined => read([...pseudo, ...more]).fault;
const without = (name: string): Pair[] => pseudo.filter(([each]) => each !== name);

describe('pseudo-headers (RFC 9113, section 8.3)', () => {
  test('come in any order, and the authority may be missing', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray([...pseudo], { minLength: 4 }), (pairs) => {
        expect(read(pairs).fault).toBeUndefined();
      }),
    );
    expect(read(without(':authority')).fault).toBeUndefined();
  });

  test.each([':method', ':scheme', ':path'])('%s is required', (name) => {
    expect(read(without(name)).fault).toBe(`no ${name}`);
  });

  test('none comes twice', () => {
    for (const pair of pseudo) expect(read([...pseudo, pair]).fault).toBe('a pseudo-header twice');
  });

  test('none comes after another header', () => {
    for (const pair of pseudo) {
      const [name] = pair;
      expect(read([...without(name), ['accept', '*/*'], pair]).fault).toBe('a pseudo-header after other headers');
    }
  });

  test.each([':status', ':protocol', ':', ':Method', ':other'])('%s is none of a request', (name) => {
    expect(read([...pseudo, [name, '200']]).fault).toBe('an unknown pseudo-header');
  });

  test('the path is not empty, and begins with a slash unless it is the asterisk of OPTIONS', () => {
    for (const path of ['', 'x', 'http://x/', '*']) {
      expect(read([...without(':path'), [':path', path]]).fault, path).toBeDefined();
    }
    const options: Pair[] = [
      [':method', 'OPTIONS'],
      [':scheme', 'http'],
      [':path', '*'],
    ];
    expect(read(options).fault).toBeUndefined();
  });

  test('trailers have none', () => {
    for (const pair of pseudo) expect(read([pair], true).fault).toBe('a pseudo-header in trailers');
    expect(read([['x-checksum', '1']], true).fault).toBeUndefined();
  });

  test('CONNECT is not supported', () => {
    expect(
      read([
        [':method', 'CONNECT'],
        [':authority', 'x:1'],
      ]).fault,
    ).toBe('CONNECT is not supported');
  });
});

describe('names and values (RFC 9113, section 8.2.1)', () => {
  const token = /^[!#$%&'*+\-.^_`|~0-9a-z]$/;

  test('a name is of the characters of a token without upper case', () => {
    for (let code = 0; code < 256; code++) {
      const character = String.fromCharCode(code);
      const isAllowed = token.test(character);
      expect(faultOf([`x${character}y`, '1']) === undefined, `code ${code}`).toBe(isAllowed);
      // A colon at the start is that of a pseudo-header.
      expect(faultOf([character, '1']) === undefined, `code ${code}`).toBe(isAllowed);
    }
    expect(faultOf(['', '1'])).toBeDefined();
  });

  test('a value has no control characters but the tab', () => {
    for (let code = 0; code < 256; code++) {
      const isAllowed = code === 9 || (code >= 0x20 && code !== 0x7f);
      const character = String.fromCharCode(code);
      expect(faultOf(['x-value', `a${character}b`]) === undefined, `code ${code}`).toBe(isAllowed);
    }
  });

  test('a value neither begins nor ends with white space, and may be empty', () => {
    for (const value of [' a', 'a ', '\ta', 'a\t', ' ', '\t']) expect(faultOf(['x', value])).toBeDefined();
    expect(faultOf(['x', ''])).toBeUndefined();
  });

  test('the values of pseudo-headers have the same rule', () => {
    for (const value of ['/a\nb', '/a\0', ' /', '/ ']) {
      expect(read([...without(':path'), [':path', value]]).fault).toBeDefined();
    }
  });
});

describe('headers of one connection (RFC 9113, section 8.2.2)', () => {
  test.each(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade'])('%s', (name) => {
    expect(faultOf([name, 'x'])).toBe(`the header ${name}`);
  });

  test('te has no value but trailers', () => {
    expect(faultOf(['te', 'trailers'])).toBeUndefined();
    for (const value of ['', 'gzip', 'trailers, gzip']) expect(faultOf(['te', value])).toBeDefined();
  });
});

describe('a header that comes several times', () => {
  const valueOf = (name: string, ...values: string[]): unknown =>
    read([...pseudo, ...values.map((value) => [name, value] as const)]).headers[name];

  test('is joined, or the first one counts', () => {
    expect(valueOf('x-many', 'a', 'b', 'c')).toBe('a, b, c');
    expect(valueOf('cookie', 'a=1', 'b=2')).toBe('a=1; b=2');
    expect(valueOf('set-cookie', 'a=1', 'b=2')).toEqual(['a=1', 'b=2']);
    expect(valueOf('authorization', 'one', 'two')).toBe('one');
  });

  test('its content-length agrees with itself', () => {
    expect(faultOf(['content-length', '1'], ['content-length', '2'])).toBe('two content-lengths');
    expect(faultOf(['content-length', '1'], ['content-length', '1'])).toBeUndefined();
  });
});

test('a content-length is a number', () => {
  const lengthOf = (value: string): number | undefined => read([...pseudo, ['content-length', value]]).contentLength();
  expect(read(pseudo).contentLength()).toBe(-1);
  expect(lengthOf('0')).toBe(0);
  expect(lengthOf('999999999999999')).toBe(999_999_999_999_999);
  for (const value of ['', '-1', '+1', '1.0', '0x1', '1 1', '9999999999999999', '1,1']) {
    expect(lengthOf(value), value).toBeUndefined();
  }
});

test('names of the language are names of headers', () => {
  const { headers, fault } = read([...pseudo, ['__proto__', 'x'], ['constructor', 'y'], ['constructor', 'z']]);
  expect(fault).toBeUndefined();
  expect(headers['__proto__']).toBe('x');
  expect(headers['constructor']).toBe('y, z');
});

test('any pairs are read without an exception, and the first fault stays', () => {
  const text = fc.string({ unit: 'binary', maxLength: 6 });
  const name = fc.oneof(text, fc.constantFrom(...pseudo.map(([each]) => each), 'te', 'cookie', 'content-length'));
  fc.assert(
    fc.property(fc.array(fc.tuple(name, text)), fc.boolean(), (pairs, areTrailers) => {
      const headers = new RequestHeaders(areTrailers);
      let fault: string | undefined;
      for (const [each, value] of pairs) {
        headers.add(each, value);
        if (fault !== undefined) expect(headers.fault).toBe(fault);
        fault = headers.fault;
      }
      headers.finish();
      headers.contentLength();
    }),
  );
});
