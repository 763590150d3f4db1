import type { Schedule, SeededRandom } from '@tenure/test-support';
import type { Command } from '@tenure/core';
import type { LeaseChecker } from './lease-checker.ts';
import type { SimulatedServer } from './simulated-server.ts';

export interface LeaseHolderOptions {
  readonly id: bigint;
  readonly ttlMs: number;
  readonly schedule: Schedule;
  readonly random: SeededRandom;
  readonly checker: LeaseChecker;
  /** Those that run now; one that is stalled takes requests as well. */
  readonly servers: () => readonly SimulatedServer[];
}

/** After so long without an answer a client asks another server. */
const patienceMs = 400;

/**
 * A client with one lease id: it is granted the lease, renews it for a while, and then forgets it, revokes it, or
 * revokes it and is granted a new one in the same breath.
 */
export class LeaseHolder {
  readonly id: bigint;
  readonly ttlMs: number;
  /** Whether it goes on to renew, as far as it knows. */
  renewing = false;
  lastSuccessMs = -Infinity;
  readonly #options: LeaseHolderOptions;
  /** Of the lease under this id: answers that belong to an earlier one are not for this one. */
  #life = 0;
  #settling = false;
  #server: SimulatedServer | undefined;
  /** When a grant of this life was known to have been made, or a revocation. */
  #grantedMs = Infinity;
  #revokedMs = Infinity;

  constructor(options: LeaseHolderOptions) {
    this.#options = options;
    this.id = options.id;
    this.ttlMs = options.ttlMs;
  }

  start(): void {
    const { schedule, random } = this.#options;
    schedule.in(random.between(0, 2_000), () => this.#begin());
  }

  /** From here on only a lease that is held now is renewed, to the end. */
  settle(): void {
    this.#settling = true;
  }

  #begin(): void {
    if (this.#settling) return;
    const { schedule, random } = this.#options;
    this.#life += 1;
    // A new life may begin while the last one still renews; it has to be granted before anybody counts on it.
    this.renewing = false;
    const life = this.#life;
    this.#grantedMs = Infinity;
    this.#revokedMs = Infinity;
    const grant: Command = { kind: 'leaseGrant', id: this.id, ttlMs: this.ttlMs, label: '' };
    this.#propose(grant, (ok) => {
      if (life !== this.#life || !ok) return;
      this.#grantedMs = schedule.nowMs;
      this.renewing = true;
      this.#renew(life);
    });
    // Some keep their lease to the end.
    const holdMs = random.chance(0.3) ? Infinity : random.between(200, 3 * this.ttlMs);
    if (holdMs < Infinity) schedule.in(holdMs, () => this.#end());
  }

  /** What becomes of the lease is chosen so that an expiry and a new life often meet. */
  #end(): void {
    if (this.#settling) return;
    const { schedule, random } = this.#options;
    this.renewing = false;
    const choice = random.next();
    if (choice < 0.35) {
      this.#revoke();
      schedule.in(random.between(10, 1_500), () => this.#begin());
    } else {
      const atExpiryMs = this.ttlMs * random.between(0.9, 1.1);
      schedule.in(choice < 0.7 ? atExpiryMs : random.between(this.ttlMs, 4 * this.ttlMs), () => {
        if (this.#settling) return;
        this.#revoke();
        this.#begin();
      });
    }
  }

  #revoke(): void {
    const { schedule } = this.#options;
    const life = this.#life;
    this.#propose({ kind: 'leaseRevoke', id: this.id }, (ok) => {
      if (!ok || life !== this.#life) return;
      this.#revokedMs = schedule.nowMs;
      // It is gone for good: no server may say otherwise.
      this.#ask(life);
    });
  }

  #renew(life: number): void {
    if (life !== this.#life || !this.renewing) return;
    const { schedule } = this.#options;
    this.#ask(life);
    schedule.in(this.ttlMs / 3, () => this.#renew(life));
  }

  #ask(life: number): void {
    const { schedule, random } = this.#options;
    const sentMs = schedule.nowMs;
    const server = this.#choose();
    let answered = false;
    const answer = (ttlMs: number): void => {
      schedule.in(random.between(0.2, 2), () => {
        answered = true;
        if (life === this.#life && !server.clock.dead) this.#answered(ttlMs, sentMs);
      });
    };
    server.clock.deliver(random.between(0.2, 2), () => {
      const outcome = server.renew(this.id);
      if (typeof outcome === 'number') answer(outcome);
      else outcome.then(answer, () => undefined);
    });
    schedule.in(patienceMs, () => {
      if (!answered && this.#server === server) this.#server = undefined;
    });
  }

  #answered(ttlMs: number, sentMs: number): void {
    const { checker, schedule } = this.#options;
    if (ttlMs > 0) {
      this.lastSuccessMs = Math.max(this.lastSuccessMs, sentMs);
      // An earlier grant, whose outcome this client never learnt, may have come behind the revocation.
      const gone = !checker.exists(this.id) && (checker.endOf(this.id)?.atMs ?? Infinity) < sentMs;
      if (sentMs >= this.#revokedMs && gone) {
        checker.violated('L3', `a renewal of lease ${this.id} was acknowledged that began after it had been revoked`);
      }
    } else {
      const known = this.#grantedMs <= sentMs && this.renewing;
      if (known && (checker.grantedMs(this.id) ?? Infinity) < this.#grantedMs) {
        checker.violated('L3', `lease ${this.id}, granted before the renewal began, was said not to exist`);
      }
      this.renewing = false;
      schedule.in(50, () => this.#begin());
    }
  }

  #propose(command: Command, done: (ok: boolean) => void): void {
    const { schedule, random } = this.#options;
    const server = this.#choose();
    const told = (ok: boolean): void => {
      schedule.in(random.between(0.2, 2), () => {
        if (!server.clock.dead) done(ok);
      });
    };
    server.clock.deliver(random.between(0.2, 2), () => {
      server.propose(command).then(
        (response) => told(response.kind !== 'error'),
        () => undefined,
      );
    });
  }

  /** The server that it used last, mostly. */
  #choose(): SimulatedServer {
    const { random, servers } = this.#options;
    const running = servers();
    const last = this.#server;
    if (last === undefined || last.clock.dead || random.chance(0.1)) this.#server = random.pick(running);
    return this.#server as SimulatedServer;
  }
}
