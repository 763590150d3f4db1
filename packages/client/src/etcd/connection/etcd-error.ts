import { TenureError } from '../../errors/tenure-error.ts';

/**
 * `unreachable`: there was no connection, so nothing was sent. `ambiguous`: the request was sent, and may have been
 * executed or may still be; also when etcd is at its quota, which may show only after the put. `refused`: etcd executed
 * nothing, and a retry may succeed. `denied`: etcd executed nothing, and this user has no permission. `compacted`: the
 * requested revision is gone. `invalid`: etcd does not accept such a request; its text is in `details`. `closed`: this
 * client has been closed.
 */
export type EtcdErrorCode =
  | 'unreachable'
  | 'ambiguous'
  | 'refused'
  | 'denied'
  | 'compacted'
  | 'invalid'
  | 'not-found'
  | 'closed';

/** A request to etcd, or to a Tenure server, that failed. */
export class EtcdError extends TenureError {
  static override readonly kind = 'EtcdError';
  readonly etcdCode: EtcdErrorCode;
  /** The text of the server alone: `etcdserver: requested lease not found`. */
  readonly details: string;
  /** Further details of a Tenure server about a request that it did not execute: `there is no leader`. */
  readonly reason: string | undefined;
  readonly endpoint: string;
  /** For a watch that was compacted: the oldest remaining revision. */
  readonly compactRevision: bigint | undefined;

  constructor(
    etcdCode: EtcdErrorCode,
    endpoint: string,
    details: string,
    options: { readonly cause?: unknown; readonly compactRevision?: bigint; readonly reason?: string | undefined } = {},
  ) {
    const words = options.reason === undefined ? details : `${details}: ${options.reason}`;
    super('backend', `${endpoint}: ${words}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.etcdCode = etcdCode;
    this.endpoint = endpoint;
    this.details = details;
    this.reason = options.reason;
    this.compactRevision = options.compactRevision;
  }
}
