import { TenureError } from './tenure-error.ts';

/** The lease did not become free within the wait time. The entry of the caller has been removed from the queue. */
export class AcquireTimeoutError extends TenureError {
  static override readonly kind = 'AcquireTimeoutError';
  readonly leaseName: string;
  readonly waitedMs: number;

  constructor(leaseName: string, waitedMs: number, options?: { readonly cause?: unknown }) {
    super('timed-out', `the lease ${JSON.stringify(leaseName)} did not become free within ${waitedMs} ms`, options);
    this.leaseName = leaseName;
    this.waitedMs = waitedMs;
  }
}
