import type { CoreError } from '@tenure/core';

/** The requester may not have what it asks for. Thrown where no command is applied, which would answer it. */
export class AccessError extends Error {
  readonly refusal: CoreError;

  constructor(refusal: CoreError) {
    super(`the requester is refused: ${refusal.code}`);
    this.name = 'AccessError';
    this.refusal = refusal;
  }
}
