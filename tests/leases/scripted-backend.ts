import { BackendError, createLeaseManager } from 'tenure';
import type { Clock, Entry, LeaseBackend, LeaseManager, LeaseManagerOptions } from 'tenure';
import { memoryBackend } from 'tenure/memory';
import { FakeClock } from 'tenure/testing';

type Call = 'enter' | 'list' | 'renew' | 'leave' | 'update';
/** Intercepts a call to the store: it may execute the call or not, delay it, and choose the answer. */
type Hook = (pass: () => Promise<unknown>, signal: AbortSignal) => Promise<unknown>;

/**
 * A connection to a store on which a test decides the outcome of each call. Hints are lost only if the test says so.
 */
export class ScriptedBackend implements LeaseBackend {
  readonly kind = 'scripted';
  readonly pollIntervalMs = 500;
  readonly calls: Call[] = [];
  readonly hooks: Partial<Record<Call, Hook>> = {};
  deafToHints = false;
  openWatches = 0;
  readonly #inner: LeaseBackend;

  constructor(inner: LeaseBackend) {
    this.#inner = inner;
  }

  get limits(): LeaseBackend['limits'] {
    return this.#inner.limits;
  }

  enter: LeaseBackend['enter'] = (claim, options) => {
    return this.#call('enter', options.signal, () => this.#inner.enter(claim, { ...options, signal: never }));
  };

  list: LeaseBackend['list'] = (name, signal) => this.#call('list', signal, () => this.#inner.list(name, never));

  renew: LeaseBackend['renew'] = (renewals, signal) => {
    return this.#call('renew', signal, () => this.#inner.renew(renewals, never));
  };

  leave: LeaseBackend['leave'] = (entry, signal) => {
    return this.#call('leave', signal, () => this.#inner.leave(entry, never));
  };

  update: LeaseBackend['update'] = (entry, data, signal) => {
    return this.#call('update', signal, () => this.#inner.update(entry, data, never));
  };

  watch: LeaseBackend['watch'] = (name, onChange) => {
    const watch = this.#inner.watch(name, () => (this.deafToHints ? undefined : onChange()));
    this.openWatches++;
    return {
      close: () => {
        watch.close();
        this.openWatches--;
      },
    };
  };

  async close(): Promise<void> {}

  count(call: Call): number {
    return this.calls.filter((other) => other === call).length;
  }

  async #call<T>(call: Call, signal: AbortSignal, pass: () => Promise<T>): Promise<T> {
    this.calls.push(call);
    const hook = this.hooks[call];
    return hook === undefined ? await pass() : ((await hook(pass, signal)) as T);
  }
}

const never = new AbortController().signal;

export const unreachable: Hook = async () => {
  throw new BackendError('scripted', 'unavailable', 'the connection was refused');
};
/** As on a half-open connection. It ignores the signal, too. */
export const hanging: Hook = () => new Promise(() => {});
/** The store executes the call, and the answer is lost. */
export const answerLost: Hook = async (pass) => {
  await pass();
  throw new BackendError('scripted', 'unavailable', 'the connection was lost');
};

export interface LeaseWorld {
  readonly clock: FakeClock;
  readonly store: LeaseBackend;
  /** Another process, with its own connection to the same store. */
  open(holder: string, options?: Partial<LeaseManagerOptions>): { leases: LeaseManager; backend: ScriptedBackend };
  queue(name: string): Promise<readonly Entry[]>;
  sleep(ms: number): Promise<void>;
}

/** A store in virtual time, with leases that last a second. */
export function leaseFixture(): LeaseWorld {
  const clock = new FakeClock();
  const store = memoryBackend({ clock });
  return {
    clock,
    store,
    open: (holder, options = {}) => {
      const backend = new ScriptedBackend(store);
      return { backend, leases: createLeaseManager({ backend: backend, clock, holder, ttlMs: 1_000, ...options }) };
    },
    queue: (name) => store.list(`lease/${name}`, never),
    sleep: (ms) => new Promise((resolve) => clock.setTimer(ms, resolve)),
  };
}

/** The same monotonic clock with a different wall clock. */
export function withOtherWall(clock: Clock, aheadMs: number): Clock {
  return {
    now: () => {
      const { monotonicMs, wallMs } = clock.now();
      return { monotonicMs, wallMs: wallMs + aheadMs };
    },
    setTimer: (delayMs, callback) => clock.setTimer(delayMs, callback),
  };
}

/** A promise that a test settles. */
export function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (error: unknown) => void } {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}
