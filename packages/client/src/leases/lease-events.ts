import type { LeaseEvent, LeaseEventMessage } from '../diagnostics/lease-channel.ts';
import { tellLeaseEvent } from '../diagnostics/lease-channel.ts';
import type { LeaseLostError } from '../errors/lease-lost-error.ts';
import type { Hold } from './hold.ts';
import type { LeaseListener } from './lease-listener.ts';

/** Whom to tell of what becomes of holds: listeners and diagnostics channels. Nothing here ever throws. */
export class LeaseEvents {
  readonly #backend: string;
  readonly #listeners = new Set<LeaseListener>();
  readonly #parent: LeaseEvents | undefined;

  /** What is told here is told to the listeners of `parent` as well. */
  constructor(backend: string, parent?: LeaseEvents) {
    this.#backend = backend;
    this.#parent = parent;
  }

  /** The function takes the listener away again. A listener that is given twice is told twice. */
  add(listener: LeaseListener): () => void {
    const own: LeaseListener = {
      afterAcquire: (hold) => listener.afterAcquire?.(hold),
      beforeRelease: (hold) => listener.beforeRelease?.(hold),
      afterLoss: (hold, error) => listener.afterLoss?.(hold, error),
    };
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  acquired(hold: Hold): void {
    this.#tell('acquired', hold);
    this.#each(hold, (listener) => listener.afterAcquire?.(hold));
  }

  /** For a listener that came later. */
  repeatAcquired(hold: Hold, listener: LeaseListener): void {
    this.#call(hold, () => listener.afterAcquire?.(hold));
  }

  renewed(hold: Hold): void {
    this.#tell('renewed', hold);
  }

  renewFailed(hold: Hold, error: unknown): void {
    this.#tell('renew-failed', hold, { error });
  }

  releasing(hold: Hold): void {
    this.#each(hold, (listener) => listener.beforeRelease?.(hold));
  }

  released(hold: Hold): void {
    this.#tell('released', hold);
  }

  releaseFailed(hold: Hold, error: unknown): void {
    this.#tell('release-failed', hold, { error });
  }

  /** At once, for whoever must stop. */
  lost(hold: Hold, error: LeaseLostError): void {
    this.#each(hold, (listener) => listener.afterLoss?.(hold, error));
  }

  /** The same loss, once its cause is known. */
  explained(hold: Hold, error: LeaseLostError): void {
    this.#tell('lost', hold, { error });
  }

  waiting(name: string, holder: string): void {
    tellLeaseEvent('waiting', () => ({ name, holder, backend: this.#backend, fencingToken: undefined }));
  }

  #tell(event: LeaseEvent, hold: Hold, more?: Pick<LeaseEventMessage, 'error'>): void {
    const { name, holder, fencingToken } = hold;
    tellLeaseEvent(event, () => ({ name, holder, fencingToken, backend: this.#backend, ...more }));
  }

  #each(hold: Hold, call: (listener: LeaseListener) => unknown): void {
    const parent = this.#parent;
    const all = [...this.#listeners, ...(parent === undefined ? [] : parent.#listeners)];
    for (const listener of all) this.#call(hold, () => call(listener));
  }

  #call(hold: Hold, call: () => unknown): void {
    const failed = (error: unknown): void => this.#tell('listener-failed', hold, { error });
    try {
      // A listener may be an async function all the same, and nobody waits for it.
      Promise.resolve(call()).catch(failed);
    } catch (error) {
      failed(error);
    }
  }
}
