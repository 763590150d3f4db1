import { TenureError } from '../../errors/tenure-error.ts';

/**
 * `unreachable`: there was no connection, so nothing was sent. `ambiguous`: it was sent, and may have been done or may
 * still be; also when etcd is at its quota, which may show only after the put. `refused`: etcd did nothing, and may do
 * it later. `denied`: nothing was done, and will not be for this
 * user. `compacted`: the revision that was asked for is gone. `invalid`: etcd does not take such a request; its words
 * are in `details`. `closed`: this client has been closed.
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
  /** The server's words alone: `etcdserver: requested lease not found`. */
  readonly details: string;
  /** What a server of Tenure knows more, of a request that it did not answer: `there is no leader`. */
  readonly reason: string | undefined;
  readonly endpoint: string;
  /** Of a watch that was compacted: the oldest revision that is left. */
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
