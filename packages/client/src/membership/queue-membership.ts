import { BackendError } from '../errors/backend-error.ts';
import { ClosedError } from '../errors/closed-error.ts';
import { NoMembersError } from '../errors/no-members-error.ts';
import { UsageError } from '../errors/usage-error.ts';
import { isEligible, untilEligible, whileEligible } from '../leases/eligible.ts';
import { cancellableIterator } from '../leases/cancellable-iterator.ts';
import { LeaseEvents } from '../leases/lease-events.ts';
import type { LeaseHold } from '../leases/lease-hold.ts';
import type { LeaseRegistry } from '../leases/lease-registry.ts';
import type { WatchOptions } from '../leases/lease-watch.ts';
import type { QueueTarget } from '../leases/queue-target.ts';
import { abortable } from '../time/abortable.ts';
import { onAbort } from '../time/on-abort.ts';
import type { Signal } from '../time/signal.ts';
import { sleep } from '../time/sleep.ts';
import { memberData, membersOf } from './member.ts';
import type { Member } from './member.ts';
import type { Membership, MembershipOptions } from './membership.ts';
import { rendezvousOwner } from './rendezvous.ts';
import { changesBetween, isSameSnapshot } from './snapshot.ts';
import type { Changes, Snapshot } from './snapshot.ts';

/** The pause before it joins again when the backend could not be reached. */
const retryMs = 1_000;

/** Joins a group. Resolves when the entry was made and the group was read. Throws a UsageError at once. */
export async function joinMembership(
  registry: LeaseRegistry,
  group: string,
  options: MembershipOptions = {},
): Promise<Membership> {
  const { id = registry.holder, weight = 1, metadata = {} } = options;
  if (typeof id !== 'string' || id === '')
    throw new UsageError('the id of a member must be a string, not an empty one');
  if (typeof weight !== 'number' || !(weight >= 0 && weight < Infinity)) {
    throw new UsageError(`weight must be a number of at least 0, not ${weight}`);
  }
  const membership = new QueueMembership(registry, group, { ...options, id, weight, metadata: copyOf(metadata) });
  await membership.join();
  return membership;
}

type GivenOptions = MembershipOptions & Required<Pick<MembershipOptions, 'id' | 'weight' | 'metadata'>>;

class QueueMembership implements Membership {
  readonly group: string;
  readonly self: Member;
  readonly #registry: LeaseRegistry;
  readonly #target: QueueTarget;
  readonly #options: GivenOptions;
  readonly #closed = new AbortController();
  /** Separate from the manager's, whose listeners are not called for the entry of a group. */
  readonly #events: LeaseEvents;
  /** Woken when there is a new snapshot, or when there will be no more. */
  readonly #watchers = new Set<() => void>();
  readonly #unsubscribeClosed: () => void;
  #snapshot: Snapshot | undefined;
  #hold: LeaseHold | undefined;
  #running: Promise<unknown> | undefined;

  constructor(registry: LeaseRegistry, group: string, options: GivenOptions) {
    const { id, weight, metadata } = options;
    this.group = group;
    this.self = { id, weight, metadata, holder: registry.holder };
    this.#registry = registry;
    this.#events = new LeaseEvents(registry.backend.kind);
    this.#options = options;
    this.#target = { queue: `membership/${group}`, name: group, mode: 'member', permits: 1 };
    registry.check(this.#target);
    registry.checkData(memberData(this.self));
    this.#unsubscribeClosed = onAbort(registry.closed, () => this.#end(registry.closed.reason));
  }

  get snapshot(): Snapshot {
    return this.#snapshot ?? { group: this.group, members: [] };
  }

  isMember(): boolean {
    return this.#hold?.isHeld() ?? false;
  }

  async join(): Promise<void> {
    const { signal, eligible = always } = this.#options;
    signal?.throwIfAborted();
    const cancelled = signal === undefined ? undefined : onAbort(signal, () => this.#end(signal.reason));
    try {
      if (isEligible(eligible)) this.#hold = await this.#enter(signal);
      // Without an entry, a read is what shows that the backend can't be reached.
      else await abortable(this.#registry.list(this.#target), this.#closed.signal);
      const ready = new Promise<void>((resolve) => this.#watchers.add(resolve));
      this.#running = this.#registry.processRef.during(() => Promise.all([this.#stay(), this.#follow()]));
      if (this.#snapshot === undefined) await ready;
      this.#closed.signal.throwIfAborted();
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    } finally {
      cancelled?.();
    }
  }

  owner(resource: string): Member {
    this.#closed.signal.throwIfAborted();
    const owner = rendezvousOwner(this.snapshot.members, resource);
    if (owner === undefined) throw new NoMembersError(this.group);
    return owner;
  }

  owns(resource: string): boolean {
    return this.isMember() && rendezvousOwner(this.snapshot.members, resource)?.id === this.self.id;
  }

  watch(options: WatchOptions = {}): AsyncIterable<Changes> {
    const { processRef } = this.#registry;
    return cancellableIterator({ signal: options.signal, processRef }, (signal) => this.#watch(signal));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end(new ClosedError(`the membership in ${JSON.stringify(this.group)}`));
    this.#unsubscribeClosed();
    await this.#hold?.[Symbol.asyncDispose]();
    await this.#running;
  }

  #end(reason: unknown): void {
    this.#closed.abort(reason);
    this.#wake();
  }

  #wake(): void {
    for (const wake of this.#watchers) wake();
    this.#watchers.clear();
  }

  async *#watch(signal: Signal): AsyncGenerator<Changes, never> {
    let seen: Snapshot | undefined;
    for (;;) {
      signal.throwIfAborted();
      this.#closed.signal.throwIfAborted();
      const { snapshot } = this;
      if (snapshot === seen) {
        await this.#changed(signal);
      } else {
        const changes = changesBetween(seen, snapshot);
        seen = snapshot;
        yield changes;
      }
    }
  }

  async #changed(signal: Signal): Promise<void> {
    await new Promise<void>((resolve) => {
      const offAbort = onAbort(signal, () => wake());
      const wake = (): void => {
        offAbort();
        this.#watchers.delete(wake);
        resolve();
      };
      this.#watchers.add(wake);
    });
  }

  async #enter(signal: Signal | undefined): Promise<LeaseHold> {
    const { ttlMs } = this.#options;
    const terms = { data: memberData(this.self), signal, ...(ttlMs === undefined ? {} : { ttlMs }) };
    return await this.#registry.acquire(this.#target, terms, { defaultWait: 'none', events: this.#events });
  }

  /** Joins again whenever the entry was lost or this process has become eligible, until it is disposed of. */
  async #stay(): Promise<void> {
    const { eligible = always } = this.#options;
    const { clock } = this.#registry;
    const { signal } = this.#closed;
    while (!signal.aborted) {
      try {
        if (!(await untilEligible({ clock, eligible, signal, limitMs: Infinity }))) return;
        this.#hold = this.isMember() ? this.#hold! : await this.#enter(signal);
        await this.#whileMember(this.#hold);
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof BackendError) || error.backendCode !== 'unavailable') return this.#end(error);
        await sleep(clock, retryMs, signal);
      }
    }
  }

  async #whileMember(hold: LeaseHold): Promise<void> {
    const { eligible = always } = this.#options;
    const watched = whileEligible({ clock: this.#registry.clock, eligible, signal: this.#closed.signal });
    const offs: (() => void)[] = [];
    await new Promise<void>((resolve) => {
      for (const signal of [hold.signal, watched.signal, this.#closed.signal]) offs.push(onAbort(signal, resolve));
    });
    for (const off of offs) off();
    watched.end();
    await hold[Symbol.asyncDispose]();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#closed;
    try {
      for await (const entries of this.#registry.readQueue(this.#target, signal)) {
        const snapshot: Snapshot = { group: this.group, members: membersOf(entries) };
        if (isSameSnapshot(this.#snapshot, snapshot)) continue;
        this.#snapshot = snapshot;
        this.#wake();
      }
    } catch (error) {
      this.#end(error);
    }
  }
}

function always(): boolean {
  return true;
}

/** A deep copy, as other members will read it, so that later changes of the original have no effect. */
function copyOf(metadata: object): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(JSON.stringify(metadata)) as Record<string, unknown>;
  } catch {
    throw new UsageError('the metadata of a member must be serializable as JSON');
  }
}
