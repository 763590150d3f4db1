import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { newNonce, noChannel, proofOf, proves, type LinkRole, type LinkTranscript } from './link-proof.ts';
import { systemRandom } from '../../random/system-random.ts';

const nonce = fc.uint8Array({ minLength: 32, maxLength: 32 });
const id = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const transcripts: fc.Arbitrary<LinkTranscript> = fc.record({
  clusterId: id,
  epoch: id,
  leader: fc.string(),
  memberId: id,
  run: fc.string(),
  followerNonce: nonce,
  leaderNonce: nonce,
  channel: fc.uint8Array({ maxLength: 32 }),
});
const roles = fc.constantFrom<LinkRole>('leader', 'follower');
const secrets = fc.string({ minLength: 1 });

describe('the link proof', () => {
  test('is valid for its role, secret and transcript', () => {
    fc.assert(
      fc.property(roles, secrets, transcripts, (role, secret, transcript) => {
        expect(proves(proofOf(role, secret, transcript), role, secret, transcript)).toBe(true);
      }),
    );
  });

  test('is invalid for anything else: reflected, with another secret, or with any other part', () => {
    fc.assert(
      fc.property(secrets, secrets, transcripts, transcripts, (secret, another, transcript, other) => {
        const mac = proofOf('leader', secret, transcript);
        expect(proves(mac, 'follower', secret, transcript)).toBe(false);
        if (another !== secret) expect(proves(mac, 'leader', another, transcript)).toBe(false);
        for (const key of Object.keys(transcript) as (keyof LinkTranscript)[]) {
          const changed = { ...transcript, [key]: other[key] };
          const isSame = String(transcript[key]) === String(other[key]);
          expect(proves(mac, 'leader', secret, changed)).toBe(isSame);
        }
      }),
    );
  });

  test('is invalid when it is truncated or empty', () => {
    const transcript = {
      clusterId: 1n,
      epoch: 2n,
      leader: '3/4',
      memberId: 5n,
      run: '6',
      followerNonce: newNonce(systemRandom),
      leaderNonce: newNonce(systemRandom),
      channel: noChannel,
    };
    const mac = proofOf('follower', 'secret', transcript);
    expect(proves(mac.subarray(0, 31), 'follower', 'secret', transcript)).toBe(false);
    expect(proves(new Uint8Array(), 'follower', 'secret', transcript)).toBe(false);
    expect(() => proofOf('follower', '', transcript)).toThrow('without a secret');
  });
});

test('without TLS a proof is that of the versions before the channel', () => {
  const transcript = { clusterId: 1n, epoch: 2n, leader: '3/4', memberId: 5n, run: '6' };
  const nonces = { followerNonce: Buffer.alloc(32, 1), leaderNonce: Buffer.alloc(32, 2) };
  const said = ['tenure.peer.v1', 'leader', '1', '2', '3/4', '5', '6', '01'.repeat(32), '02'.repeat(32)];
  const before = createHmac('sha256', 'secret').update(JSON.stringify(said)).digest();
  expect(proofOf('leader', 'secret', { ...transcript, ...nonces, channel: noChannel })).toEqual(before);
});
