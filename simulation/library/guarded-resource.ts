import type { Violations } from '../world/violations.ts';

export interface ResourceAccess {
  readonly name: string;
  readonly token: bigint;
  /** The process that uses the resource. */
  readonly by: string;
}

interface Guarded {
  highestToken: bigint;
  value: number;
  readonly owners: Map<bigint, string>;
}

/** A resource that rejects every token below the highest one it has seen. It judges K2. */
export class GuardedResource {
  rejections = 0;
  readonly #violations: Violations;
  readonly #guarded = new Map<string, Guarded>();

  constructor(violations: Violations) {
    this.#violations = violations;
  }

  /** Undefined if the token is rejected. */
  read(access: ResourceAccess): number | undefined {
    return this.#admitted(access)?.value;
  }

  /** Adds one to the value that was read. False if the token is rejected. */
  increment(access: ResourceAccess, readValue: number): boolean {
    const guarded = this.#admitted(access);
    if (guarded === undefined) return false;
    if (guarded.value !== readValue) {
      this.#violated(`${access.name}: an update was lost, since ${access.by} wrote from ${readValue}`);
    }
    guarded.value = readValue + 1;
    return true;
  }

  #admitted({ name, token, by }: ResourceAccess): Guarded | undefined {
    const guarded = this.#guarded.get(name) ?? { highestToken: 0n, value: 0, owners: new Map() };
    this.#guarded.set(name, guarded);
    const owner = guarded.owners.get(token) ?? by;
    if (owner !== by) this.#violated(`${name}: ${by} and ${owner} both use the token ${token}`);
    guarded.owners.set(token, owner);
    if (token < guarded.highestToken) {
      this.rejections += 1;
      return undefined;
    }
    guarded.highestToken = token;
    return guarded;
  }

  #violated(what: string): void {
    this.#violations.report('K2', what);
  }
}
