import { TenureError } from './tenure-error.ts';

/** The lease is held, and the caller did not want to wait. */
export class LeaseHeldError extends TenureError {
  static override readonly kind = 'LeaseHeldError';
  readonly leaseName: string;
  /** The holder of the first entry ahead, as it was read. For people, since it may have changed. */
  readonly heldBy: string | undefined;

  constructor(leaseName: string, heldBy: string | undefined) {
    super('held-elsewhere', `the lease ${JSON.stringify(leaseName)} is held by ${heldBy ?? 'another holder'}`);
    this.leaseName = leaseName;
    this.heldBy = heldBy;
  }
}
