import { TenureError } from './tenure-error.ts';

/**
 * `unavailable`: no answer; what was asked may have been done, and may work later. `not-migrated`: its tables are
 * missing or older than this library. `misconfigured`: it will not work until somebody changes something: a right, a
 * password, a wrong address. `driver-missing`: the package of the driver is not installed. `closed`: the pool or
 * client was closed. `refused`: it does not take this request. It is certain that nothing was done, except with
 * `unavailable`, and with `closed` for a call that was under way.
 */
export type BackendErrorCode =
  | 'unavailable'
  | 'not-migrated'
  | 'misconfigured'
  | 'driver-missing'
  | 'closed'
  | 'refused';

/** What keeps the leases did not do it. The message says what to do about that; `cause` is the error of the driver. */
export class BackendError extends TenureError {
  static override readonly kind = 'BackendError';
  /** The kind of backend: `postgres`. */
  readonly backend: string;
  readonly backendCode: BackendErrorCode;

  constructor(backend: string, backendCode: BackendErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super('backend', `${backend}: ${message}`, options);
    this.backend = backend;
    this.backendCode = backendCode;
  }
}
