import { TenureError } from './tenure-error.ts';

/** An invalid argument, such as an empty name. Thrown before anything is sent. */
export class UsageError extends TenureError {
  static override readonly kind = 'UsageError';

  constructor(message: string) {
    super('bad-input', message);
  }
}
