import { createHash, scryptSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { systemRandom } from '../random/system-random.ts';
import { systemClock } from '../time/system-clock.ts';
import { ScryptHasher } from './scrypt-hasher.ts';
import { parseScryptHash, type ScryptCosts } from './scrypt-text.ts';

const client = '10.0.0.1';
const neverAborts = (): AbortSignal => new AbortController().signal;
const cheap: ScryptCosts = { log2N: 4, r: 8, p: 1 };

function hasherWith(costs?: ScryptCosts): ScryptHasher {
  return new ScryptHasher({ clock: systemClock, random: systemRandom, ...(costs && { costs }) });
}

const hasher = hasherWith(cheap);
let clients = 0;

/** From another client each time: failures slow down a client. */
function check(password: string, hash: string | undefined, by = hasher): Promise<boolean> {
  clients += 1;
  const from = `10.0.${clients >> 8}.${clients & 255}`;
  return by.check({ user: 'ada', password, hash, client: from, signal: neverAborts() });
}

test('the default is a set of OWASP, in the text of the hash, with another salt each time', async () => {
  const real = hasherWith();
  const text = await real.hash('secret', client, neverAborts());
  expect(text).toMatch(/^\$scrypt-sha512\$ln=15,r=8,p=3\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
  expect(await check('secret', text, real)).toBe(true);
  const twice = await Promise.all([hasher.hash('a', client, neverAborts()), hasher.hash('a', client, neverAborts())]);
  expect(twice[0]).not.toBe(twice[1]);
});

test.each([
  ['an empty one', '', 'x'],
  ['with NUL', 'a\0b', 'a\0c'],
  ['that ends in NUL', 'a\0', 'a'],
  ['of 64 bytes, the block of HMAC', 'x'.repeat(64), 'x'.repeat(65)],
  ['longer than the 72 bytes of bcrypt', `${'x'.repeat(72)}a`, `${'x'.repeat(72)}b`],
  ['of a megabyte', 'y'.repeat(1 << 20), 'y'.repeat((1 << 20) - 1)],
  ['of other letters', 'Schlüssel\u{1F511}', 'Schlüssel\u{1F512}'],
  ['in another form of Unicode', 'Zo\u00eb', 'Zoe\u0308'],
])('a password %s', async (_, password, other) => {
  const text = await hasher.hash(password, client, neverAborts());
  expect(await check(password, text)).toBe(true);
  expect(await check(other, text)).toBe(false);
  // Any implementation of scrypt and SHA-512 can check the hash.
  const { salt, derived } = parseScryptHash(text)!;
  const digest = createHash('sha512').update(password).digest();
  expect(scryptSync(digest, salt, 32, { N: 16, r: 8, p: 1 }).equals(derived)).toBe(true);
});

test('a hash with other costs is checked by them', async () => {
  const text = await hasherWith({ log2N: 6, r: 4, p: 2 }).hash('old', client, neverAborts());
  expect(text).toContain('$ln=6,r=4,p=2$');
  expect(await check('old', text)).toBe(true);
  expect(await check('new', text)).toBe(false);
});

const salt = 'c2FsdHNhbHRzYWx0c2FsdA';
const full = 'A'.repeat(43);
test.each([
  ['no hash', undefined],
  ['nothing', ''],
  ['bcrypt', '$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy'],
  ['a hash of no bytes', `$scrypt-sha512$ln=4,r=8,p=1$${salt}$`],
  ['a short hash', `$scrypt-sha512$ln=4,r=8,p=1$${salt}$AAAA`],
  ['a long hash', `$scrypt-sha512$ln=4,r=8,p=1$${salt}$${'A'.repeat(100)}`],
  ['scrypt of the password itself', `$scrypt$ln=4,r=8,p=1$${salt}$${full}`],
  ['too much memory', `$scrypt-sha512$ln=30,r=8,p=1$${salt}$${full}`],
  ['too much memory by r', `$scrypt-sha512$ln=15,r=999,p=1$${salt}$${full}`],
  ['too much work', `$scrypt-sha512$ln=17,r=8,p=999$${salt}$${full}`],
  ['no work', `$scrypt-sha512$ln=0,r=0,p=0$${salt}$${full}`],
  ['a long text', `$scrypt-sha512$ln=4,r=8,p=1$${salt.repeat(50)}$${full}`],
])('%s is refused', async (_, text) => {
  expect(text === undefined ? undefined : parseScryptHash(text)).toBeUndefined();
  expect(await check('', text)).toBe(false);
});

test('an unknown user takes the time of a wrong password', async () => {
  const slow = hasherWith({ log2N: 12, r: 8, p: 2 });
  const known = await slow.hash('secret', client, neverAborts());
  const cpuMs = async (hash: string | undefined): Promise<number> => {
    const before = process.cpuUsage();
    await check('wrong', hash, slow);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  const took: Record<'known' | 'unknown' | 'unreadable', number[]> = { known: [], unknown: [], unreadable: [] };
  for (let i = 0; i < 9; i += 1) {
    took.known.push(await cpuMs(known));
    took.unknown.push(await cpuMs(undefined));
    took.unreadable.push(await cpuMs('$2a$10$x'));
  }
  const median = (values: number[]): number => values.sort((a, b) => a - b)[4]!;
  expect(median(took.unknown) / median(took.known)).toBeGreaterThan(0.6);
  expect(median(took.unknown) / median(took.known)).toBeLessThan(1.6);
  expect(median(took.unreadable) / median(took.known)).toBeGreaterThan(0.6);
});

test('logins of one user share a hash, those of two users do not, whether they exist or not', async () => {
  const hash = await hasher.hash('secret', client, neverAborts());
  const attempt = (user: string, password: string): Promise<boolean> =>
    hasher.check({ user, password, hash, client: `10.1.${clients}.${(clients += 1) & 255}`, signal: neverAborts() });
  const all = ['ada', 'ada', 'bob', 'ada'].map((user) => attempt(user, 'secret'));
  const wrong = ['ada', 'ada', 'bob'].map((user) => attempt(user, 'guess'));
  expect(await Promise.all(all)).toEqual([true, true, true, true]);
  expect(await Promise.all(wrong)).toEqual([false, false, false]);
  // A password is never shared with another, which the texts of two attempts could have hidden.
  const joined = await Promise.all([attempt('a', '","b'), attempt('a","', 'b'), attempt('ada', 'secret')]);
  expect(joined).toEqual([false, false, true]);
});
