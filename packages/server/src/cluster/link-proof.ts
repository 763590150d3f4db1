import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Random } from '../random/random.ts';

/** All that both ends of a stream have said of themselves: what a proof is about. */
export interface LinkTranscript {
  readonly clusterId: bigint;
  readonly epoch: bigint;
  /** How the leader is named in the claim of that epoch: its member, and the run of its process. */
  readonly leader: string;
  readonly memberId: bigint;
  readonly run: string;
  readonly followerNonce: Uint8Array;
  readonly leaderNonce: Uint8Array;
}

/**
 * Who proves, and when. A proof of one is none of the other, so that nobody can be answered with his own words. That of
 * the greeting is made before the leader has said anything, so it may be a repetition: it tells strangers from those
 * who may be servers, and no more.
 */
export type LinkRole = 'greeting' | 'leader' | 'follower';

const nonceBytes = 32;

/** Fresh for each stream: a proof that was overheard on another one is worth nothing. */
export function newNonce(random: Random): Buffer {
  return random.bytes(nonceBytes);
}

/** Stands for the leader's nonce in the proof of a greeting. */
export const noNonce: Uint8Array = new Uint8Array();

export function isNonce(nonce: Uint8Array): boolean {
  return nonce.length === nonceBytes;
}

/** What only those can say who know the secret of the cluster. */
export function proofOf(role: LinkRole, secret: string, transcript: LinkTranscript): Buffer {
  if (secret === '') throw new Error('a cluster without a secret has no streams between its servers');
  const { clusterId, epoch, leader, memberId, run, followerNonce, leaderNonce } = transcript;
  // An array in JSON reads in one way only: no two transcripts have the same bytes.
  const fields = [
    'tenure.peer.v1',
    role,
    clusterId.toString(),
    epoch.toString(),
    leader,
    memberId.toString(),
    run,
    Buffer.from(followerNonce).toString('hex'),
    Buffer.from(leaderNonce).toString('hex'),
  ];
  return createHmac('sha256', secret).update(JSON.stringify(fields)).digest();
}

/** Whether `given` is that proof. Takes as long for a wrong one as for a right one. */
export function proves(given: Uint8Array, role: LinkRole, secret: string, transcript: LinkTranscript): boolean {
  const expected = proofOf(role, secret, transcript);
  return given.length === expected.length && timingSafeEqual(given, expected);
}
