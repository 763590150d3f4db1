import type { NodeClock, SeededRandom } from '@tenure/test-support';
import type { ClientConnection } from '../world/client-connection.ts';
import type { World } from '../world/world.ts';
import { AccessChecker } from './access-checker.ts';
import { type AccessStep, grants, revocations, users } from './access-scenario.ts';
import { Account } from './account.ts';
import { Administrator } from './administrator.ts';
import { Passwords } from './passwords.ts';
import { UserConnection } from './user-connection.ts';

/** On a healthy cluster: until a change is made. */
const maxChangesMs = 10_000;
/** A client of watches that stands still does not notice their end: until the last one goes on. */
const standstillMs = 2_500;
/** On a healthy cluster: until every watch without permission has ended. */
const watchEndMs = 1_200;
const stepMs = 50;

/** The users of a world: in a world without changes of users no client has one. */
export class Access {
  readonly #world: World;
  readonly #steps: readonly AccessStep[];
  readonly #passwords = new Passwords();
  readonly #accounts = new Map<string, Account>();
  readonly #checker: AccessChecker;
  #administrator: Administrator | undefined;

  constructor(world: World, steps: readonly AccessStep[]) {
    const { schedule, violations, keys } = world;
    this.#world = world;
    this.#steps = steps;
    this.#checker = new AccessChecker({
      log: keys.oracle.access,
      trueMs: () => schedule.nowMs,
      report: (rule, what) => violations.report(rule, what),
      toldRevision: () => keys.toldRevision,
      currentRevision: () => keys.oracle.currentRevision,
      keysOfLeaseAt: (revision, id) => keys.oracle.keysOfLeaseAt(revision, id),
    });
  }

  start(): void {
    if (this.#steps.length === 0) return;
    const { coverage } = this.#world;
    const name = 'administrator';
    const [clock, random] = [this.#world.clientClock(), this.#world.random(name)];
    const connect = (): ClientConnection => this.#connectAs('root', name, clock, random);
    const [checker, passwords] = [this.#checker, this.#passwords];
    this.#administrator = new Administrator({ connect, clock, random, checker, coverage, passwords });
    this.#administrator.add(this.#steps);
  }

  /** A connection of that client, as a user. Which one depends on its name alone. */
  connect(name: string, clock: NodeClock, random: SeededRandom): ClientConnection {
    if (this.#steps.length === 0) return this.#world.connect(name, clock, random);
    const number = Number(name.slice(name.lastIndexOf('-') + 1));
    return this.#connectAs(users[number % users.length]!, name, clock, random);
  }

  /** No change is begun any more. */
  settle(): void {
    this.#administrator?.hurry();
  }

  /** On a healthy cluster: all watches end when their users lose everything. Then all may do everything. */
  async finish(): Promise<void> {
    const { schedule, coverage, keys } = this.#world;
    if (this.#administrator === undefined) return;
    await schedule.runUntil(schedule.nowMs + standstillMs);
    await this.#make(this.#administrator, revocations());
    const revokedMs = schedule.nowMs;
    await schedule.runUntil(schedule.nowMs + watchEndMs);
    this.#checker.checkEnded(revokedMs);
    await this.#make(this.#administrator, grants());
    coverage.count('access: refused when it was applied', keys.oracle.access.refusals);
  }

  async #make(administrator: Administrator, steps: readonly AccessStep[]): Promise<void> {
    const { schedule, violations } = this.#world;
    const limitMs = schedule.nowMs + maxChangesMs;
    administrator.add(steps);
    while (!administrator.isDone && schedule.nowMs < limitMs) await schedule.runUntil(schedule.nowMs + stepMs);
    if (!administrator.isDone) violations.report('liveness', 'changes of users are not answered');
  }

  #connectAs(user: string, name: string, clock: NodeClock, random: SeededRandom): ClientConnection {
    const { coverage } = this.#world;
    const open = (): ClientConnection => this.#world.connect(name, clock, random);
    let account = this.#accounts.get(name);
    if (account === undefined) {
      account = new Account({ user, passwords: this.#passwords, clock, random, coverage, connect: open });
      this.#accounts.set(name, account);
    }
    return new UserConnection({ connection: open(), account, checker: this.#checker, coverage, clock });
  }
}
