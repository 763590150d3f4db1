import type { LeaseManager } from './lease-manager.ts';
import type { AcquireOptions } from './leases/acquire-options.ts';
import type { Hold } from './leases/hold.ts';
import type { LeaseHandle } from './leases/lease-handle.ts';
import type { Membership } from './membership/membership.ts';

/**
 * The same manager, with the leases of `requestLease` distributed over the members of a group. A handle acquires only a
 * lease that `membership` assigns to this process. When the lease is assigned to another member, the hold is released
 * and its signal aborts. All other calls go to the manager unchanged. Disposing of it releases the handles' holds, but
 * not the manager and the membership, which must outlive it.
 */
export function loadBalanced(manager: LeaseManager, membership: Membership): LeaseManager {
  const balancer = new Balancer(manager, membership);
  return {
    holder: manager.holder,
    requestLease: (name) => balancer.requestLease(name),
    acquire: (name, options) => manager.acquire(name, options),
    tryAcquire: (name, options) => manager.tryAcquire(name, options),
    withLease: (name, options, work) => manager.withLease(name, options, work),
    inspect: (name) => manager.inspect(name),
    watch: (name, options) => manager.watch(name, options),
    election: (name, options) => manager.election(name, options),
    readWriteLock: (name) => manager.readWriteLock(name),
    semaphore: (name, permits) => manager.semaphore(name, permits),
    membership: (group, options) => manager.membership(group, options),
    addListener: (listener) => manager.addListener(listener),
    [Symbol.asyncDispose]: () => balancer.end(),
  };
}

class Balancer {
  readonly #manager: LeaseManager;
  readonly #membership: Membership;
  readonly #handles = new Map<string, LeaseHandle>();
  readonly #ended = new AbortController();
  #following: Promise<void> | undefined;

  constructor(manager: LeaseManager, membership: Membership) {
    this.#manager = manager;
    this.#membership = membership;
  }

  requestLease(name: string): LeaseHandle {
    const known = this.#handles.get(name);
    if (known !== undefined) return known;
    const inner = this.#manager.requestLease(name);
    const { signal: ended } = this.#ended;
    const shouldHold = (): boolean => !ended.aborted && this.#membership.owns(name) && inner.shouldHold();
    const handle: LeaseHandle = {
      name,
      get hold() {
        return inner.hold;
      },
      shouldHold,
      isHeld: () => inner.isHeld(),
      acquire: (options) => this.#acquire(inner, shouldHold, options),
      release: (options) => inner.release(options),
      addListener: (listener) => inner.addListener(listener),
    };
    this.#handles.set(name, handle);
    this.#following ??= this.#follow();
    return handle;
  }

  async end(): Promise<void> {
    this.#ended.abort();
    await this.#following;
    await this.#releaseAll(() => true);
  }

  async #acquire(
    inner: LeaseHandle,
    shouldHold: () => boolean,
    options: AcquireOptions | undefined,
  ): Promise<Hold | null> {
    if (!inner.isHeld() && !shouldHold()) return null;
    const hold = await inner.acquire(options);
    // It may have been assigned to another member while this process waited.
    if (hold === null || shouldHold()) return hold;
    await release(inner);
    return null;
  }

  /** Runs until the membership ends, which its watch reports by an error. */
  async #follow(): Promise<void> {
    try {
      for await (const _changes of this.#membership.watch({ signal: this.#ended.signal })) {
        await this.#releaseAll((handle) => !this.#membership.owns(handle.name));
      }
    } catch {
      // Without a membership no lease is assigned to this process.
      await this.#releaseAll(() => true);
    }
  }

  async #releaseAll(which: (handle: LeaseHandle) => boolean): Promise<void> {
    await Promise.all([...this.#handles.values()].filter(which).map(release));
  }
}

async function release(handle: LeaseHandle): Promise<void> {
  const abortReason = new Error(`the lease ${JSON.stringify(handle.name)} belongs to another member now`);
  await handle.release({ abortReason }).catch(() => {});
}
