import { BackendError } from '../errors/backend-error.ts';
import { ClosedError } from '../errors/closed-error.ts';
import { NoMembersError } from '../errors/no-members-error.ts';
import { UsageError } from '../errors/usage-error.ts';
import { isEligible, untilEligible, whileEligible } from '../leases/eligible.ts';
import { endable } from '../leases/endable.ts';
import { LeaseEvents } from '../leases/lease-events.ts';
import type { LeaseHold } from '../leases/lease-hold.ts';
import type { LeaseKeeper } from '../leases/lease-keeper.ts';
import type { WatchOptions } from '../leases/lease-watch.ts';
import type { LineSpot } from '../leases/line-seeker.ts';
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

/** Before it joins again when the backend could not be reached. */
const retryMs = 1_000;

/** Joins a group, and resolves when the own entry was made and the group was read. Throws a UsageError at once. */
export async function joinMembership(
  keeper: LeaseKeeper,
  group: string,
  options: MembershipOptions = {},
): Promise<Membership> {
  const { id = keeper.holder, weight = 1, metadata = {} } = options;
  if (typeof id !== 'string' || id === '')
    throw new UsageError('the id of a member must be a string, not an empty one');
  if (typeof weight !== 'number' || !(weight >= 0 && weight < Infinity)) {
    throw new UsageError(`weight must be a number of 0 and more, not ${weight}`);
  }
  const membership = new LineMembership(keeper, group, { ...options, id, weight, metadata: copyOf(metadata) });
  await membership.join();
  return membership;
}

type GivenOptions = MembershipOptions & Required<Pick<MembershipOptions, 'id' | 'weight' | 'metadata'>>;

class LineMembership implements Membership {
  readonly group: string;
  readonly self: Member;
  readonly #keeper: LeaseKeeper;
  readonly #spot: LineSpot;
  readonly #options: GivenOptions;
  readonly #closed = new AbortController();
  /** Its own: who listens to the leases of the manager does not mean the place in a group. */
  readonly #events: LeaseEvents;
  /** Woken when there is another snapshot, or none will come any more. */
  readonly #watchers = new Set<() => void>();
  readonly #forgetKeeper: () => void;
  #snapshot: Snapshot | undefined;
  #hold: LeaseHold | undefined;
  #running: Promise<unknown> | undefined;

  constructor(keeper: LeaseKeeper, group: string, options: GivenOptions) {
    const { id, weight, metadata } = options;
    this.group = group;
    this.self = { id, weight, metadata, holder: keeper.holder };
    this.#keeper = keeper;
    this.#events = new LeaseEvents(keeper.backend.kind);
    this.#options = options;
    this.#spot = { line: `membership/${group}`, name: group, mode: 'member', permits: 1 };
    keeper.check(this.#spot);
    keeper.checkData(memberData(this.self));
    this.#forgetKeeper = onAbort(keeper.closed, () => this.#end(keeper.closed.reason));
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
      // Who enters nothing learns by reading that there is nothing to be reached.
      else await abortable(this.#keeper.list(this.#spot), this.#closed.signal);
      const ready = new Promise<void>((resolve) => this.#watchers.add(resolve));
      this.#running = this.#keeper.processRef.during(() => Promise.all([this.#stay(), this.#follow()]));
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
    const { processRef } = this.#keeper;
    return endable({ signal: options.signal, processRef }, (signal) => this.#watch(signal));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end(new ClosedError(`the membership in ${JSON.stringify(this.group)}`));
    this.#forgetKeeper();
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
    return await this.#keeper.acquire(this.#spot, terms, { defaultWait: 'none', events: this.#events });
  }

  /** Joins again whenever the own entry was lost or this process has become eligible, until it is disposed of. */
  async #stay(): Promise<void> {
    const { eligible = always } = this.#options;
    const { clock } = this.#keeper;
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
    const watched = whileEligible({ clock: this.#keeper.clock, eligible, signal: this.#closed.signal });
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
      for await (const line of this.#keeper.read(this.#spot, signal)) {
        const snapshot: Snapshot = { group: this.group, members: membersOf(line) };
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

/** As others will read it, so that nothing changes later by a hand that still has the original. */
function copyOf(metadata: object): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(JSON.stringify(metadata)) as Record<string, unknown>;
  } catch {
    throw new UsageError('the metadata of a member must go through JSON');
  }
}
