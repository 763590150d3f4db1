import type { Violations } from '../world/violations.ts';

/** Judges K5: a request that must not be done twice is not sent again when it may have been done. */
export class ResendChecker {
  readonly #violations: Violations;
  readonly #unknown = new Set<string>();

  constructor(violations: Violations) {
    this.#violations = violations;
  }

  /** `request` is equal for two sendings of one request only. */
  sent(request: string, by: string): void {
    if (this.#unknown.has(request)) this.#violations.report('K5', `${by} sent ${request} again`);
  }

  /** The request was done, or may have been. */
  ambiguous(request: string): void {
    this.#unknown.add(request);
  }
}
