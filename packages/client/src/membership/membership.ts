import type { WatchOptions } from '../leases/lease-watch.ts';
import type { Signal } from '../time/signal.ts';
import type { Member, MemberMetadata } from './member.ts';
import type { Changes, Snapshot } from './snapshot.ts';

export interface MembershipOptions {
  /** Unique in the group; by default the holder of the manager. A member that comes back takes its old one's place. */
  readonly id?: string;
  /** What others should know of this member, such as its address; it goes through JSON. */
  readonly metadata?: MemberMetadata;
  /** How much of the resources it takes, beside the weights of others; by default 1. */
  readonly weight?: number;
  /** How long it stays a member after its last renewal, in milliseconds; by default as long as a lease. */
  readonly ttlMs?: number;
  /** While it says no, this process leaves the group, and goes on watching it. It is asked about every second. */
  readonly eligible?: () => boolean;
  /** Cancels the joining. Who has joined stays until the membership is disposed of. */
  readonly signal?: Signal | undefined;
}

/**
 * One process in a group of them, for as long as it is renewed: it joins anew by itself when its entry was lost.
 * Disposing of it leaves the group.
 */
export interface Membership extends AsyncDisposable {
  readonly group: string;
  readonly self: Member;
  /** Whether this process counts as a member: without I/O, and false as soon as its entry can't be counted on. */
  isMember(): boolean;
  /** The last that was read. */
  readonly snapshot: Snapshot;
  /**
   * First the current snapshot without changes, then what has changed since the one before, in order. Who is slow to
   * ask gets several changes as one. It ends by an error only: the reason of the signal, a ClosedError, or a
   * BackendError that will not pass.
   */
  watch(options?: WatchOptions): AsyncIterable<Changes>;
  /**
   * Whose the resource is, by the last snapshot: everybody who has read the same one says the same. Another process may
   * have read a newer one, so for a short time two may say that a thing is theirs: use a lease where that matters.
   * Throws a NoMembersError if nobody could own anything.
   */
  owner(resource: string): Member;
  /** Whether it is this process's, which is certainly not while it is no member. Never throws. */
  owns(resource: string): boolean;
  /** Leaves the group. Never rejects. */
  [Symbol.asyncDispose](): Promise<void>;
}
