import { TenureError } from './tenure-error.ts';

/** The caller waited as long as it wanted to, in vain. Nothing stays behind in the line. */
export class AcquireTimeoutError extends TenureError {
  static override readonly kind = 'AcquireTimeoutError';
  readonly leaseName: string;
  readonly waitedMs: number;

  constructor(leaseName: string, waitedMs: number, options?: { readonly cause?: unknown }) {
    super('timed-out', `the lease ${JSON.stringify(leaseName)} was not to be had within ${waitedMs} ms`, options);
    this.leaseName = leaseName;
    this.waitedMs = waitedMs;
  }
}
