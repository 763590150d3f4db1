import { TenureError } from './tenure-error.ts';

/** Somebody else holds it, and the caller did not want to wait. */
export class LeaseHeldError extends TenureError {
  static override readonly kind = 'LeaseHeldError';
  readonly leaseName: string;
  /** Who stands before, as it was seen; for people, since it may have changed. */
  readonly heldBy: string | undefined;

  constructor(leaseName: string, heldBy: string | undefined) {
    super('held-elsewhere', `the lease ${JSON.stringify(leaseName)} is held by ${heldBy ?? 'another'}`);
    this.leaseName = leaseName;
    this.heldBy = heldBy;
  }
}
