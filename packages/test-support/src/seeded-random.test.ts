import { expect, test } from 'vitest';
import { SeededRandom } from './seeded-random.ts';

const draws = 10_000;

test('gives the numbers that seeds of the simulation have always stood for', () => {
  const random = new SeededRandom(20_261);
  expect(Array.from({ length: 4 }, () => random.uint32())).toEqual([1570271302, 359055731, 1323193365, 3434136386]);
  expect(random.split().uint32()).toBe(2669125370);
});

test('gives others for the seed next to it', () => {
  const firsts = Array.from({ length: 1_000 }, (_, seed) => new SeededRandom(seed).uint32());
  expect(new Set(firsts).size).toBe(1_000);
});

test('reaches both ends of a range of whole numbers and nothing outside', () => {
  const random = new SeededRandom(1);
  const drawn = new Set(Array.from({ length: draws }, () => random.integer(3, 7)));
  expect(drawn).toEqual(new Set([3, 4, 5, 6, 7]));
  expect(new Set(Array.from({ length: draws }, () => random.below(3)))).toEqual(new Set([0, 1, 2]));
});

test('returns true with the given probability', () => {
  const random = new SeededRandom(2);
  const taken = Array.from({ length: draws }, () => random.chance(0.2)).filter(Boolean).length;
  expect(taken / draws).toBeCloseTo(0.2, 1);
});

test('does every kind of damage', () => {
  const random = new SeededRandom(3);
  const whole = Buffer.from('a message of some length');
  const lengths = new Set(Array.from({ length: draws }, () => Math.sign(random.damage(whole).length - whole.length)));
  expect(lengths).toEqual(new Set([-1, 0, 1]));
  expect(whole.toString()).toBe('a message of some length');
});
