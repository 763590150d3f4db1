import type { LeaseEvent, LeaseEventMessage } from '../diagnostics/lease-channel.ts';
import { publishLeaseEvent } from '../diagnostics/lease-channel.ts';
import type { LeaseLostError } from '../errors/lease-lost-error.ts';
import type { Hold } from './hold.ts';
import type { LeaseListener } from './lease-listener.ts';

/** Reports the events of holds to listeners and diagnostics channels. Nothing here ever throws. */
export class LeaseEvents {
  readonly #backend: string;
  readonly #listeners = new Set<LeaseListener>();
  readonly #parent: LeaseEvents | undefined;

  /** Events are passed on to the listeners of `parent` too. */
  constructor(backend: string, parent?: LeaseEvents) {
    this.#backend = backend;
    this.#parent = parent;
  }

  /** Returns a function that removes the listener. A listener that is added twice is called twice. */
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

  /** For a listener that was added later. */
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

  /** Called at once, because the work must stop. */
  lost(hold: Hold, error: LeaseLostError): void {
    this.#each(hold, (listener) => listener.afterLoss?.(hold, error));
  }

  /** The same loss, once its cause is known. */
  explained(hold: Hold, error: LeaseLostError): void {
    this.#tell('lost', hold, { error });
  }

  waiting(name: string, holder: string): void {
    publishLeaseEvent('waiting', () => ({ name, holder, backend: this.#backend, fencingToken: undefined }));
  }

  #tell(event: LeaseEvent, hold: Hold, more?: Pick<LeaseEventMessage, 'error'>): void {
    const { name, holder, fencingToken } = hold;
    publishLeaseEvent(event, () => ({ name, holder, fencingToken, backend: this.#backend, ...more }));
  }

  #each(hold: Hold, call: (listener: LeaseListener) => unknown): void {
    const parent = this.#parent;
    const all = [...this.#listeners, ...(parent === undefined ? [] : parent.#listeners)];
    for (const listener of all) this.#call(hold, () => call(listener));
  }

  #call(hold: Hold, call: () => unknown): void {
    const failed = (error: unknown): void => this.#tell('listener-failed', hold, { error });
    try {
      // A listener may be an async function despite its type. Its promise is not awaited.
      Promise.resolve(call()).catch(failed);
    } catch (error) {
      failed(error);
    }
  }
}
