import { ClosedError } from '../errors/closed-error.ts';
import { NoMembersError } from '../errors/no-members-error.ts';
import { cancellableIterator } from '../leases/cancellable-iterator.ts';
import type { WatchOptions } from '../leases/lease-watch.ts';
import type { Member } from '../membership/member.ts';
import type { Membership } from '../membership/membership.ts';
import { rendezvousOwner } from '../membership/rendezvous.ts';
import { changesBetween } from '../membership/snapshot.ts';
import type { Changes, Snapshot } from '../membership/snapshot.ts';
import { onAbort } from '../time/on-abort.ts';
import { ProcessRef } from '../time/process-ref.ts';
import type { Signal } from '../time/signal.ts';

/** A group whose members and owners the test sets. Changes are visible at once. */
export class FakeMembership implements Membership {
  readonly group: string;
  readonly self: Member;
  readonly #owners = new Map<string, string>();
  readonly #waiting = new Set<() => void>();
  #snapshot: Snapshot;
  #isClosed = false;

  /** At first this process is the only member. */
  constructor(options: { readonly group?: string; readonly id?: string } = {}) {
    this.group = options.group ?? 'fake';
    this.self = memberOf(options.id ?? 'self');
    this.#snapshot = { group: this.group, members: [this.self] };
  }

  /** From now on these are the members; without the id of this process among them it is none. */
  setMembers(...members: readonly (string | Member)[]): void {
    const all = members.map((member) => (typeof member === 'string' ? memberOf(member) : member));
    this.#snapshot = { group: this.group, members: all.toSorted((one, other) => (one.id < other.id ? -1 : 1)) };
    this.#wake();
  }

  /** From now on the resource is that member's, as long as it is one; undefined leaves it to the hash again. */
  assign(resource: string, id: string | undefined): void {
    if (id === undefined) this.#owners.delete(resource);
    else this.#owners.set(resource, id);
    this.#wake();
  }

  isMember(): boolean {
    return !this.#isClosed && this.#snapshot.members.some(({ id }) => id === this.self.id);
  }

  get snapshot(): Snapshot {
    return this.#snapshot;
  }

  watch(options: WatchOptions = {}): AsyncIterable<Changes> {
    const processRef = new ProcessRef({ unref: true });
    return cancellableIterator({ signal: options.signal, processRef }, (signal) => this.#watch(signal));
  }

  owner(resource: string): Member {
    const owner = this.#ownerOf(resource);
    if (owner === undefined) throw new NoMembersError(this.group);
    return owner;
  }

  owns(resource: string): boolean {
    return this.isMember() && this.#ownerOf(resource)?.id === this.self.id;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#snapshot = { ...this.#snapshot, members: this.#snapshot.members.filter(({ id }) => id !== this.self.id) };
    this.#wake();
  }

  #ownerOf(resource: string): Member | undefined {
    const { members } = this.#snapshot;
    return members.find(({ id }) => id === this.#owners.get(resource)) ?? rendezvousOwner(members, resource);
  }

  async *#watch(signal: Signal): AsyncGenerator<Changes, never> {
    let before: Snapshot | undefined;
    for (;;) {
      signal.throwIfAborted();
      if (this.#isClosed) throw new ClosedError('the membership');
      const now = this.#snapshot;
      const woken = this.#changed(signal);
      yield changesBetween(before, now);
      before = now;
      await woken;
    }
  }

  #changed(signal: Signal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#waiting.delete(wake);
        stop();
        resolve();
      };
      this.#waiting.add(wake);
      const stop = onAbort(signal, wake);
    });
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}

function memberOf(id: string): Member {
  return { id, holder: id, metadata: {}, weight: 1 };
}
