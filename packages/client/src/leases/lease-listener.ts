import type { LeaseLostError } from '../errors/lease-lost-error.ts';
import type { Hold } from './hold.ts';

/**
 * Callbacks for the events of holds. They are called synchronously, so long work belongs elsewhere. An error that a
 * listener throws is published on the diagnostics channel `tenure:lease:listener-failed` and has no other effect.
 */
export interface LeaseListener {
  afterAcquire?(hold: Hold): void;
  /** It is still held. */
  beforeRelease?(hold: Hold): void;
  /** The signal has aborted already, with the same error. `hold.lost` resolves with the cause once it is known. */
  afterLoss?(hold: Hold, error: LeaseLostError): void;
}
