import { TenureError } from './tenure-error.ts';

/**
 * Why a hold ended without a release. `expired`: its TTL passed because it was not renewed. `unreachable`: it could not
 * be renewed in time. `stalled`: this process did not run for so long that the deadline had passed when it checked.
 * `gone`: a renewal found that the entry is gone. `hold.lost` tells more as soon as it is known: `stolen` means that
 * another entry holds now, `revoked` that the entry was removed.
 */
export type LossReason = 'expired' | 'gone' | 'stolen' | 'revoked' | 'unreachable' | 'stalled';

const words: Readonly<Record<LossReason, string>> = {
  expired: 'it expired without a renewal',
  gone: 'its entry is gone',
  stolen: 'another holder has it now',
  revoked: 'its entry was removed',
  unreachable: 'it could not be renewed in time',
  stalled: 'this process did not run for longer than the lease lasts',
};

/** The reason with which the signal of a hold aborts when the hold was lost. */
export class LeaseLostError extends TenureError {
  static override readonly kind = 'LeaseLostError';
  readonly leaseName: string;
  readonly reason: LossReason;

  constructor(leaseName: string, reason: LossReason, options?: { readonly cause?: unknown }) {
    super('lost', `the lease ${JSON.stringify(leaseName)} was lost: ${words[reason]}`, options);
    this.leaseName = leaseName;
    this.reason = reason;
  }
}
