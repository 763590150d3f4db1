import { TenureError } from './tenure-error.ts';

/**
 * Why a hold ended that nobody released: `expired` ran out because it was not renewed, `unreachable` could not be
 * renewed in time, and `stalled` means that this process did not run for so long that its time had passed when it
 * looked. `gone` was not there any more at a renewal; of that, `hold.lost` tells more as soon as it is known: `stolen`
 * is held by another, `revoked` was taken away.
 */
export type LossReason = 'expired' | 'gone' | 'stolen' | 'revoked' | 'unreachable' | 'stalled';

const words: Readonly<Record<LossReason, string>> = {
  expired: 'its time ran out without a renewal',
  gone: 'it was not there any more',
  stolen: 'another holder has it now',
  revoked: 'it was taken away',
  unreachable: 'it could not be renewed in time',
  stalled: 'this process stood still for longer than the lease lasts',
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
