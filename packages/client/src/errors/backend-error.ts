import { TenureError } from './tenure-error.ts';

/**
 * `unavailable`: there was no answer; the call may have taken effect, and a retry may succeed. `not-migrated`: the
 * tables are missing or older than this library. `misconfigured`: no retry succeeds until the configuration changes: a
 * right, a password, an address. `driver-missing`: the package of the driver is not installed. `closed`: the pool or
 * client was closed. `refused`: the store does not accept this request. The call certainly had no effect, except with
 * `unavailable`, and with `closed` for a call that was in flight.
 */
export type BackendErrorCode =
  | 'unavailable'
  | 'not-migrated'
  | 'misconfigured'
  | 'driver-missing'
  | 'closed'
  | 'refused';

/** A call to the store failed. The message says what to do about it; `cause` is the error of the driver. */
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
