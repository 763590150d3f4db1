import { expect, test } from 'vitest';
import { PeerReserve, type ReservedSocket } from './peer-reserve.ts';

class FakeSocket {
  isDestroyed = false;
  readonly remoteAddress: string;

  constructor(remoteAddress: string) {
    this.remoteAddress = remoteAddress;
  }

  destroy(): never {
    this.isDestroyed = true;
    return undefined as never;
  }
}

const from = (remoteAddress: string): FakeSocket & ReservedSocket => new FakeSocket(remoteAddress);

test('many connections from one address displace only each other, the oldest first', () => {
  const reserve = new PeerReserve(4);
  const server = from('10.0.0.1');
  const crowd = Array.from({ length: 20 }, () => from('10.9.9.9'));
  expect(reserve.take(server)).toBe(true);
  for (const stranger of crowd) expect(reserve.take(stranger)).toBe(true);
  expect(server.isDestroyed).toBe(false);
  expect(crowd.map(({ isDestroyed }) => isDestroyed)).toEqual(crowd.map((_, at) => at < 17));
  expect(reserve.size).toBe(4);
});

test('a server that connects to a full reserve gets a place, and keeps it once it is identified', () => {
  const reserve = new PeerReserve(2);
  const strangers = Array.from({ length: 2 }, () => from('10.9.9.9'));
  for (const stranger of strangers) reserve.take(stranger);
  const server = from('10.9.9.9');
  expect(reserve.take(server)).toBe(true);
  expect(strangers.map(({ isDestroyed }) => isDestroyed)).toEqual([true, false]);
  expect(reserve.isUnproved(server)).toBe(true);
  reserve.prove(server);
  expect(reserve.isUnproved(server)).toBe(false);
  for (let knocks = 0; knocks < 10; knocks += 1) reserve.take(from('10.9.9.9'));
  expect(server.isDestroyed).toBe(false);
  const second = from('10.0.0.2');
  reserve.take(second);
  reserve.prove(second);
  expect(reserve.take(from('10.0.0.3'))).toBe(false);
  reserve.giveBack(server);
  expect(reserve.take(from('10.0.0.3'))).toBe(true);
});
