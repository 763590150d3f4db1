import { TenureError } from './tenure-error.ts';

/** An argument that can't be right, such as an empty name. Thrown before anything is done. */
export class UsageError extends TenureError {
  static override readonly kind = 'UsageError';

  constructor(message: string) {
    super('bad-input', message);
  }
}
