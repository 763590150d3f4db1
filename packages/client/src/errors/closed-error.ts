import { TenureError } from './tenure-error.ts';

/** The object that was called has been disposed of. */
export class ClosedError extends TenureError {
  static override readonly kind = 'ClosedError';

  constructor(what: string) {
    super('closed', `${what} has been closed`);
  }
}
