import type { LeaseLostError } from '../errors/lease-lost-error.ts';
import type { Hold } from './hold.ts';

/**
 * What somebody wants to be told of. Called at once, in the middle of things: long work begins elsewhere. What a
 * listener throws harms nobody and is told on the diagnostics channel `tenure:lease:listener-failed`.
 */
export interface LeaseListener {
  afterAcquire?(hold: Hold): void;
  /** It is still held. */
  beforeRelease?(hold: Hold): void;
  /** Its signal has aborted already, with the same error; `hold.lost` tells the cause once it is known. */
  afterLoss?(hold: Hold, error: LeaseLostError): void;
}
