import type { WatchOptions } from '../leases/lease-watch.ts';
import type { Signal } from '../time/signal.ts';
import type { Member, MemberMetadata } from './member.ts';
import type { Changes, Snapshot } from './snapshot.ts';

export interface MembershipOptions {
  /** Unique in the group; by default the holder of the manager. A member that rejoins replaces its old entry. */
  readonly id?: string;
  /** What other members can read of this one, such as its address. Serialized as JSON. */
  readonly metadata?: MemberMetadata;
  /** Its share of the resources, relative to the weights of others; by default 1. */
  readonly weight?: number;
  /** How long it stays a member after its last renewal, in milliseconds; by default as long as a lease. */
  readonly ttlMs?: number;
  /** While it returns false, this process leaves the group but goes on watching it. It is polled about every second. */
  readonly eligible?: () => boolean;
  /** Cancels the join. It has no effect once the process has joined. */
  readonly signal?: Signal | undefined;
}

/**
 * The membership of this process in a group. It is renewed automatically, and rejoins when its entry was lost.
 * Disposing of it leaves the group.
 */
export interface Membership extends AsyncDisposable {
  readonly group: string;
  readonly self: Member;
  /** Whether this process is a member. Without I/O, and false as soon as it can't rely on its entry. */
  isMember(): boolean;
  /** The snapshot read last. */
  readonly snapshot: Snapshot;
  /**
   * First the current snapshot without changes, then the changes since the previous one, in order. A slow consumer gets
   * several changes as one. It ends only by an error: the reason of the signal, a ClosedError, or a BackendError that
   * retries do not solve.
   */
  watch(options?: WatchOptions): AsyncIterable<Changes>;
  /**
   * The owner of the resource, by the last snapshot. All processes with the same snapshot agree. Another process may
   * have a newer one, so for a short time two may both claim a resource: use a lease where that matters. Throws a
   * NoMembersError if no member has a weight.
   */
  owner(resource: string): Member;
  /** Whether this process owns the resource; false while it is not a member. Never throws. */
  owns(resource: string): boolean;
  /** Leaves the group. Never rejects. */
  [Symbol.asyncDispose](): Promise<void>;
}
