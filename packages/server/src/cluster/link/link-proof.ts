import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Random } from '../../random/random.ts';

/** What both ends of a stream have said about themselves. A proof covers all of it. */
export interface LinkTranscript {
  readonly clusterId: bigint;
  readonly epoch: bigint;
  /** The leader's name in the claim of that epoch: its member, and the run of its process. */
  readonly leader: string;
  readonly memberId: bigint;
  readonly run: string;
  readonly followerNonce: Uint8Array;
  readonly leaderNonce: Uint8Array;
  /** See channelLabel; `noChannel` without TLS. */
  readonly channel: Uint8Array;
}

/**
 * The side and the time of a proof. A proof for one role is invalid for every other, so that no server is deceived by
 * its own proof. The proof in a greeting is made before the leader has sent anything, so it may be a replay: it only
 * filters out clients that never saw a server's greeting.
 */
export type LinkRole = 'greeting' | 'leader' | 'follower';

const nonceBytes = 32;

/**
 * Over TLS both ends derive this many bytes from the keys of their connection, under this label (RFC 8446, section
 * 7.5). A proof covers them, so that it is void on any other connection: a process in between that ends TLS on both
 * sides has two connections with different bytes. They are no secret, and say nothing about the keys.
 */
const channelLabel = 'EXPERIMENTAL tenure.peer.v1 link';
const channelBytes = 32;
/** The channel of a stream without TLS. */
export const noChannel: Uint8Array = new Uint8Array();

/** What the TLS connection of a stream says about its keys; undefined on one without TLS 1.3, or a closed one. */
export interface KeyedConnection {
  keyingMaterial?(label: string, bytes: number): Uint8Array | undefined;
}

/** Undefined without TLS. */
export function channelOf(connection: KeyedConnection): Uint8Array | undefined {
  return connection.keyingMaterial?.(channelLabel, channelBytes);
}

/** Fresh for each stream, so that a proof recorded on another stream is useless. */
export function newNonce(random: Random): Buffer {
  return random.bytes(nonceBytes);
}

/** Takes the place of the leader's nonce in the proof of a greeting. */
export const noNonce: Uint8Array = new Uint8Array();

export function isNonce(nonce: Uint8Array): boolean {
  return nonce.length === nonceBytes;
}

/** A value that only a server with the cluster's secret can compute. */
export function proofOf(role: LinkRole, secret: string, transcript: LinkTranscript): Buffer {
  if (secret === '') throw new Error('a cluster without a secret has no streams between its servers');
  const { clusterId, epoch, leader, memberId, run, followerNonce, leaderNonce, channel } = transcript;
  // JSON of an array is unambiguous: no two transcripts have the same bytes.
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
    // Without TLS a proof is that of the versions before the channel.
    ...(channel.length === 0 ? [] : [Buffer.from(channel).toString('hex')]),
  ];
  return createHmac('sha256', secret).update(JSON.stringify(fields)).digest();
}

/** Whether `given` is that proof. Takes constant time. */
export function proves(given: Uint8Array, role: LinkRole, secret: string, transcript: LinkTranscript): boolean {
  const expected = proofOf(role, secret, transcript);
  return given.length === expected.length && timingSafeEqual(given, expected);
}
