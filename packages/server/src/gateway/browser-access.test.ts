import type { IncomingHttpHeaders } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { HttpRequest } from '@tenure/grpc-server';
import { BrowserAccess } from './browser-access.ts';

function requestWith(headers: IncomingHttpHeaders, more: Partial<HttpRequest> = {}): HttpRequest {
  return { method: 'POST', target: '/v3/kv/put', headers, isSecure: false, ...more };
}

const fromPage = requestWith({ origin: 'https://a.example', host: 'x' });
const fromOther = requestWith({ origin: 'https://b.example', host: 'x' });
const fromProgram = requestWith({ host: 'x' });

describe('--cors', () => {
  test('without it every page is foreign, and no program', () => {
    const access = new BrowserAccess({ cors: [], hostWhitelist: ['*'] });
    expect([fromPage, requestWith({ origin: 'null' }), fromProgram].map((each) => access.isForeign(each))).toEqual([
      true,
      true,
      false,
    ]);
    expect(access.headers(fromPage)).toEqual({});
  });

  test('the pages of its origins alone may call, and read the answer', () => {
    const access = new BrowserAccess({ cors: ['https://a.example'], hostWhitelist: ['*'] });
    expect([fromPage, fromOther].map((each) => access.isForeign(each))).toEqual([false, true]);
    expect(access.headers(fromPage)).toEqual({
      'access-control-allow-methods': 'POST, GET, OPTIONS, PUT, DELETE',
      'access-control-allow-origin': 'https://a.example',
      'access-control-allow-headers': 'accept, content-type, authorization',
      vary: 'Origin',
    });
    expect([access.headers(fromOther), access.headers(fromProgram)]).toEqual([{}, {}]);
  });

  test('* allows all', () => {
    const access = new BrowserAccess({ cors: ['*'], hostWhitelist: ['*'] });
    expect(access.isForeign(fromOther)).toBe(false);
    expect(access.headers(fromOther)).toMatchObject({ 'access-control-allow-origin': '*' });
  });

  test('a preflight is answered, with the headers of its origin alone', async () => {
    const access = new BrowserAccess({ cors: ['https://a.example'], hostWhitelist: ['*'] });
    const asked = { ...fromPage, method: 'OPTIONS' };
    expect(access.answer(asked)).toEqual({ status: 200, headers: access.headers(fromPage), body: '' });
    expect(access.answer({ ...fromOther, method: 'OPTIONS' })).toMatchObject({ status: 200, headers: {} });
    const pages = access.guard(async () => ({ status: 200, headers: { a: '1' }, body: 'page' }));
    expect(await pages(asked)).toMatchObject({ body: '' });
    expect(await pages({ ...fromPage, method: 'GET' })).toMatchObject({
      headers: { a: '1', 'access-control-allow-origin': 'https://a.example' },
      body: 'page',
    });
  });
});

describe('--host-whitelist', () => {
  const access = new BrowserAccess({ cors: [], hostWhitelist: ['localhost', '::1'] });
  test.each([
    ['localhost', true],
    ['localhost:2379', true],
    ['[::1]:2379', true],
    ['evil.example:2379', false],
    ['localhost.evil.example', false],
    ['', false],
  ])('the host %j: %j', (host, isAllowed) => {
    expect(access.answer(requestWith({ host })) === undefined).toBe(isAllowed);
    expect(access.answer(requestWith({ ':authority': host })) === undefined).toBe(isAllowed);
    // With TLS the certificate has the name.
    expect(access.answer(requestWith({ host }, { isSecure: true }))).toBe(undefined);
  });

  test('the refusal is 421 without a page', async () => {
    const pages = access.guard(async () => ({ status: 200, headers: {}, body: 'page' }));
    expect(await pages(requestWith({ host: 'evil.example' }))).toMatchObject({ status: 421 });
  });
});
