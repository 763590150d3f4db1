import { createHmac, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AuthState } from '@tenure/core';
import { VirtualClock } from '@tenure/test-support';
import { CompactSign } from 'jose';
import { afterAll, describe, expect, test } from 'vitest';
import type { JwtSetting, JwtSignMethod } from '../config/auth-token.ts';
import { readJwtKeys } from './jwt-keys.ts';
import { JwtTokens, maxJwtChars, maxUnverifiedJwts, maxVerifiedJwts } from './jwt-tokens.ts';

const folder = mkdtempSync(join(tmpdir(), 'tenure-jwt-'));
afterAll(() => rmSync(folder, { recursive: true }));
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ed25519 = generateKeyPairSync('ed25519');
const startMs = 1_800_000_000_000;

let files = 0;
function fileOf(content: string | Buffer): string {
  files += 1;
  const path = join(folder, `key-${files}`);
  writeFileSync(path, content);
  return path;
}
const privatePem = (key: KeyObject) => key.export({ type: 'pkcs8', format: 'pem' });
const publicPem = (key: KeyObject) => key.export({ type: 'spki', format: 'pem' });

function settingOf(signMethod: JwtSignMethod, keys: { publicKey?: string; privateKey?: string }): JwtSetting {
  const { publicKey: publicKeyFile = '', privateKey: privateKeyFile = '' } = keys;
  return { kind: 'jwt', signMethod, publicKeyFile, privateKeyFile, ttlMs: 300_000 };
}

const rsaFile = fileOf(privatePem(rsa.privateKey));
const rsaSetting = settingOf('RS256', { privateKey: rsaFile });

/** A server whose auth data, clock and state the test sets. */
function setUp({ setting = rsaSetting, clusterId = 0xabn, revision = 5 } = {}) {
  const clock = new VirtualClock();
  clock.stepWall(startMs);
  const user = (name: string, since: number) =>
    [name, { name, passwordHash: 'x', noPassword: false, roles: [], since }] as const;
  const auth = new AuthState({
    enabled: true,
    revision,
    enabledAt: 3,
    users: new Map([user('ada', 2), user('bob', 4)]),
    roles: new Map(),
  });
  const state = { auth, clusterId };
  const replica = { state, linearize: (): Promise<void> | undefined => undefined };
  // The provider reads no more of a state machine than this.
  const tokens = new JwtTokens({
    replica: replica as unknown as ConstructorParameters<typeof JwtTokens>[0]['replica'],
    clock,
    keys: readJwtKeys(setting),
    signMethod: setting.signMethod,
    ttlMs: setting.ttlMs,
  });
  return { clock, state, replica, tokens };
}

const valid = { username: 'ada', revision: 5, exp: startMs / 1000 + 60 };
function signed(claims: unknown, header: Record<string, unknown> = {}, key: KeyObject = rsa.privateKey) {
  const text = typeof claims === 'string' ? claims : JSON.stringify(claims);
  return new CompactSign(Buffer.from(text)).setProtectedHeader({ alg: 'RS256', ...header }).sign(key);
}
const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('issued tokens', () => {
  const ecFile = fileOf(privatePem(p256.privateKey));
  const settings: readonly JwtSetting[] = [
    ...(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const).map((method) =>
      settingOf(method, { privateKey: rsaFile, publicKey: fileOf(publicPem(rsa.publicKey)) }),
    ),
    settingOf('RS256', { privateKey: fileOf(rsa.privateKey.export({ type: 'pkcs1', format: 'pem' })) }),
    settingOf('ES256', { privateKey: ecFile }),
    settingOf('ES256', { privateKey: fileOf(p256.privateKey.export({ type: 'sec1', format: 'pem' })) }),
    settingOf('ES384', {
      privateKey: fileOf(privatePem(generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey)),
    }),
    settingOf('ES512', {
      privateKey: fileOf(privatePem(generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey)),
    }),
    settingOf('EdDSA', { privateKey: fileOf(privatePem(ed25519.privateKey)) }),
    ...(['HS256', 'HS384', 'HS512'] as const).map((method) =>
      settingOf(method, { privateKey: fileOf(randomBytes(64)) }),
    ),
  ];
  test.each(settings)('$signMethod', async (setting) => {
    const { tokens } = setUp({ setting });
    const token = (await tokens.issue('ada', 5))!;
    const [header = '', payload = ''] = token.split('.');
    expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toEqual({ alg: setting.signMethod, typ: 'JWT' });
    const exp = (startMs + 300_000) / 1000;
    const claims = { username: 'ada', revision: 5, exp, cluster: 'ab' };
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toEqual(claims);
    const requester = { user: 'ada', authRevision: 5 };
    expect(await tokens.requesterOf(token)).toEqual(requester);
    // Known by now, and so answered at once. A server that starts again verifies it.
    expect(tokens.requesterOf(token)).toEqual(requester);
    expect(await setUp({ setting }).tokens.requesterOf(token)).toEqual(requester);
    expect(await setUp({ setting, clusterId: 0xacn }).tokens.requesterOf(token)).toBeUndefined();
  });

  test('a server with the public key verifies, and issues none', async () => {
    const token = (await setUp().tokens.issue('ada', 5))!;
    const { tokens } = setUp({ setting: settingOf('RS256', { publicKey: fileOf(publicPem(rsa.publicKey)) }) });
    expect(await tokens.requesterOf(token)).toEqual({ user: 'ada', authRevision: 5 });
    const message = 'auth: token signing attempted with verify-only key';
    await expect(tokens.issue('ada', 5)).rejects.toMatchObject({ code: 2, message });
  });

  test('a token ends by the wall clock, also one that is remembered', async () => {
    const { tokens, clock } = setUp();
    const token = (await tokens.issue('ada', 5))!;
    await clock.advance(299_999);
    expect(await tokens.requesterOf(token)).toMatchObject({ user: 'ada' });
    clock.stepWall(1);
    expect(await tokens.requesterOf(token)).toBeUndefined();
    expect(tokens.size).toBe(0);
    clock.stepWall(-3_600_000);
    expect(await tokens.requesterOf(token)).toMatchObject({ user: 'ada' });
    clock.stepWall(86_400_000);
    expect(await tokens.requesterOf(token)).toBeUndefined();
  });
});

describe('refused tokens', () => {
  const publicBytes = publicPem(rsa.publicKey);
  const hmac = (key: string | Buffer) => {
    const text = `${part({ alg: 'HS256' })}.${part(valid)}`;
    return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`;
  };
  const changed = async () => {
    const [header, , signature] = (await signed(valid)).split('.');
    return `${header}.${part({ ...valid, username: 'bob' })}.${signature}`;
  };
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 });
  test.each<[string, () => string | Promise<string>]>([
    ['alg none without a signature', () => `${part({ alg: 'none' })}.${part(valid)}.`],
    ['alg none with one', () => `${part({ alg: 'none' })}.${part(valid)}.AAAA`],
    ['alg NONE', () => `${part({ alg: 'NONE' })}.${part(valid)}.AAAA`],
    ['no alg', () => `${part({})}.${part(valid)}.AAAA`],
    ['HS256 with the public key as the secret', () => hmac(publicBytes)],
    ['another algorithm of the same key', () => signed(valid, { alg: 'PS256' })],
    ['another key', () => signed(valid, {}, other.privateKey)],
    [
      'another key, which the header names',
      () => signed(valid, { jwk: other.publicKey.export({ format: 'jwk' }) }, other.privateKey),
    ],
    ['changed claims', changed],
    [
      'an unknown critical header',
      async () => `${part({ alg: 'RS256', crit: ['x'], x: 1 })}${(await signed(valid)).slice(20)}`,
    ],
    ['expired', () => signed({ ...valid, exp: startMs / 1000 })],
    ['not valid yet', () => signed({ ...valid, nbf: startMs / 1000 + 1 })],
    ['of another cluster', () => signed({ ...valid, cluster: 'ac' })],
    ['with a revision that is still to come', () => signed({ ...valid, revision: 6 })],
    ['older than the password', () => signed({ ...valid, username: 'bob', revision: 3 })],
    ['from before authentication was enabled', () => signed({ ...valid, revision: 2 })],
    ['of no user', () => signed({ ...valid, username: 'eve' })],
    ['without claims', () => signed({})],
    ['of null', () => signed(null)],
    ['of an array', () => signed([valid])],
    ['of no JSON', () => signed('{')],
    ['of nothing', () => signed('')],
    ['without a user', () => signed({ revision: 5, exp: valid.exp })],
    ['with an empty user', () => signed({ ...valid, username: '' })],
    ['with a user that is a number', () => signed({ ...valid, username: 5 })],
    ['with a user that is an object', () => signed({ ...valid, username: { toString: 'ada' } })],
    ['without a revision', () => signed({ username: 'ada', exp: valid.exp })],
    ['with a revision that is a text', () => signed({ ...valid, revision: '5' })],
    ['with revision 0', () => signed({ ...valid, revision: 0 })],
    ['with revision -1', () => signed({ ...valid, revision: -1 })],
    ['with a fraction of a revision', () => signed({ ...valid, revision: 4.5 })],
    ['with a huge revision', () => signed(JSON.stringify(valid).replace('5', '1e999'))],
    ['without an end', () => signed({ username: 'ada', revision: 5 })],
    ['with an end that is a text', () => signed({ ...valid, exp: '9999999999' })],
    ['with an infinite end', () => signed('{"username":"ada","revision":5,"exp":1e999}')],
    ['with a start that is a text', () => signed({ ...valid, nbf: '0' })],
    ['with a cluster that is a number', () => signed({ ...valid, cluster: 171 })],
    ['too long', () => signed({ ...valid, more: 'x'.repeat(maxJwtChars) })],
    ['empty', () => ''],
    ['of points', () => '..'],
    ['of other bytes', () => '\0.\0.\0'],
    ['of four parts', async () => `${await signed(valid)}.AAAA`],
  ])('%s', async (_, make) => {
    const { tokens } = setUp();
    const token = await make();
    expect(await tokens.requesterOf(token)).toBeUndefined();
    expect(await tokens.requesterOf(token)).toBeUndefined();
  });

  test('the same claims are accepted when nothing is wrong, with or without a cluster', async () => {
    const requester = { user: 'ada', authRevision: 5 };
    for (const claims of [valid, { ...valid, cluster: 'ab' }, { ...valid, nbf: startMs / 1000, more: [] }]) {
      expect(await setUp().tokens.requesterOf(await signed(claims))).toEqual(requester);
    }
  });

  test('a remembered token is judged by the auth data of now', async () => {
    const { tokens, state } = setUp();
    const token = await signed(valid);
    expect(await tokens.requesterOf(token)).toMatchObject({ user: 'ada' });
    const { users } = state.auth;
    state.auth = state.auth.with({ users: new Map(users).set('ada', { ...users.get('ada')!, since: 6 }) });
    expect(tokens.requesterOf(token)).toBeUndefined();
  });
});

test('a server that is behind learns of the auth data first', async () => {
  const { tokens, state, replica } = setUp({ revision: 4 });
  replica.linearize = async () => {
    await Promise.resolve();
    state.auth = state.auth.with({});
  };
  expect(await tokens.requesterOf(await signed(valid))).toEqual({ user: 'ada', authRevision: 5 });
});

test('ten thousand texts of 64 KiB cost nothing, and few forged ones are verified at once', async () => {
  const { tokens } = setUp();
  const garbage = ['a'.repeat(65_536), '.'.repeat(65_536), `${'a'.repeat(32_000)}.${'b'.repeat(33_534)}.c`];
  const before = process.cpuUsage();
  for (let i = 0; i < 10_000; i += 1) expect(tokens.requesterOf(garbage[i % 3]!)).toBeUndefined();
  expect(process.cpuUsage(before).user / 1000).toBeLessThan(1000);
  const forged = `${part({ alg: 'RS256' })}.${part(valid)}.`;
  const all = Array.from({ length: 1000 }, (_, i) =>
    Promise.resolve(tokens.requesterOf(`${forged}${'A'.repeat(340)}${i + 10_000}`)),
  );
  const settled = await Promise.allSettled(all);
  expect(settled.filter(({ status }) => status === 'rejected')).toHaveLength(1000 - maxUnverifiedJwts);
  expect(settled.at(-1)).toMatchObject({ reason: { code: 'overloaded' } });
  expect(settled[0]).toEqual({ status: 'fulfilled', value: undefined });
  expect(tokens.size).toBe(0);
});

test('the number of remembered tokens is limited', async () => {
  const setting = settingOf('HS256', { privateKey: fileOf(randomBytes(32)) });
  const { tokens } = setUp({ setting });
  const key = readJwtKeys(setting).verifying;
  for (let i = 0; i < maxVerifiedJwts + 10; i += 1) {
    await tokens.requesterOf(await signed({ ...valid, more: i }, { alg: 'HS256' }, key));
  }
  expect(tokens.size).toBe(maxVerifiedJwts);
});

test.each<[string, JwtSetting, RegExp]>([
  ['a file that is missing', settingOf('RS256', { privateKey: '/no/such' }), /^--auth-token: priv-key: ENOENT/],
  ['no PEM', settingOf('RS256', { privateKey: fileOf('x') }), /^--auth-token: priv-key: .* is no PEM file/],
  ['a private key as the public one', settingOf('RS256', { publicKey: rsaFile }), /pub-key: .* it is a private key/],
  [
    'keys that are no pair',
    settingOf('ES256', {
      privateKey: fileOf(privatePem(p256.privateKey)),
      publicKey: fileOf(publicPem(rsa.publicKey)),
    }),
    /the pub-key is not that of the priv-key/,
  ],
  ['another type', settingOf('ES256', { privateKey: rsaFile }), /ES256 needs a key of the curve prime256v1/],
  ['another curve', settingOf('ES384', { privateKey: fileOf(privatePem(p256.privateKey)) }), /curve secp384r1/],
  ['no RSA', settingOf('PS256', { privateKey: fileOf(privatePem(p256.privateKey)) }), /PS256 needs an RSA key/],
  ['no Ed25519', settingOf('EdDSA', { privateKey: rsaFile }), /EdDSA needs an Ed25519 key/],
  [
    'a short RSA key',
    settingOf('RS256', {
      privateKey: fileOf(privatePem(generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey)),
    }),
    /2048 bits or more/,
  ],
  ['a short secret', settingOf('HS256', { privateKey: fileOf('secret') }), /has 6 bytes, and HS256 needs 32 or more/],
])('%s is refused at the start', (_, setting, message) => expect(() => readJwtKeys(setting)).toThrow(message));
