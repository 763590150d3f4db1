import { getCiphers } from 'node:tls';
import { expect, test } from 'vitest';
import { defaultCiphers, parseCipherSuites } from './cipher-suites.ts';

test('each suite is one that OpenSSL has', () => {
  const known = new Set(getCiphers().map((name) => name.toUpperCase()));
  expect(defaultCiphers.split(':').filter((name) => !known.has(name))).toEqual([]);
});

test('the order given is kept, and a name given twice counts once', () => {
  const text =
    'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,' +
    'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256';
  const parsed = parseCipherSuites(text);
  expect('ciphers' in parsed && parsed.ciphers.split(':').slice(3)).toEqual([
    'ECDHE-RSA-CHACHA20-POLY1305',
    'ECDHE-RSA-AES128-GCM-SHA256',
  ]);
});

test.each(['ECDHE-RSA-AES128-GCM-SHA256', ',', 'TLS_AES_256_GCM_SHA384', 'TLS_RSA_WITH_AES_128_GCM_SHA256'])(
  '%j is refused',
  (text) => expect(parseCipherSuites(text)).toHaveProperty('fault'),
);
