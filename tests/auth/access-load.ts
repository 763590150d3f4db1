import type { ClusterMember } from '../cluster/cluster-member.ts';
import { type AnonymousAccess, AnonymousConnections } from './anonymous-access.ts';
import { KeptLease } from './kept-lease.ts';
import { AccessClient, outcomeOf, pause } from './access-client.ts';
import { AccessJudge, UserFacts } from './access-judge.ts';
import { AccessWatch } from './access-watch.ts';
import { permissionOf, type RootAccess } from './root-access.ts';

/** How soon an open watch ends that has lost its permission. */
const watchEndsWithinMs = 1_000;
/** How long a change lasts, so that the watches must have ended meanwhile. */
const lastingMs = 1_500;
const writePauseMs = 50;
const leaseTtlSeconds = 60n;

/**
 * Clients of four users, and one without an identity, through all servers, while root changes what they may do. `keep`
 * keeps its permission, that of `flip` is revoked and granted, `gone` is deleted and added again, and `pass` gets one
 * password after the other.
 */
export class AccessLoad {
  readonly judge = new AccessJudge();
  readonly watches: { readonly user: UserFacts; readonly watch: AccessWatch }[] = [];
  readonly #keep = new UserFacts('keep');
  readonly #flip = new UserFacts('flip');
  readonly #gone = new UserFacts('gone');
  readonly #pass = new UserFacts('pass');
  readonly #root: RootAccess;
  readonly #connections = new AnonymousConnections();
  readonly #clients: AccessClient[] = [];
  readonly #leases: KeptLease[] = [];
  #writing: Promise<void> = Promise.resolve();
  #stopped = false;

  private constructor(root: RootAccess) {
    this.#root = root;
  }

  /** Enables authentication, with its users. */
  static async start(root: RootAccess, members: () => readonly ClusterMember[]): Promise<AccessLoad> {
    const load = new AccessLoad(root);
    const servers = (): AnonymousAccess[] => members().map((member) => load.#connections.to(member));
    await root.enable();
    for (const [at, user] of load.#users.entries()) {
      await root.addUser(user.name, user.password());
      const ID = BigInt(100 + at);
      await root.persist(({ lease }) => lease.leaseGrant({ ID, TTL: 600n }), 'etcdserver: lease already exists');
      await root.persist(({ kv }) => kv.put({ key: Buffer.from(`${user.name}/leased`), lease: ID }));
      const client = new AccessClient({ judge: load.judge, user, servers, leaseId: ID });
      load.#clients.push(client);
      await client.logIn();
      for (const { name } of servers()) {
        const server = (): AnonymousAccess | undefined => servers().find((one) => one.name === name);
        load.watches.push({ user, watch: new AccessWatch(load.judge, user, client, server) });
        if (user !== load.#keep) continue;
        load.#leases.push(await KeptLease.grant(leaseTtlSeconds, client, server, root));
      }
    }
    load.#clients.push(new AccessClient({ judge: load.judge, user: undefined, servers, leaseId: 100n }));
    load.#writing = load.#write();
    return load;
  }

  get #users(): readonly UserFacts[] {
    return [this.#keep, this.#flip, this.#gone, this.#pass];
  }

  /** One round of changes. */
  async change(round: number): Promise<void> {
    await Promise.all([this.#revoke(round), this.#delete(), this.#changePassword()]);
  }

  /** While it lasts, every client may do everything. */
  async disable(): Promise<void> {
    const { enabled } = this.judge;
    const root = this.#root;
    await enabled.change(false, () => root.persist(({ auth }) => auth.authDisable({})));
    await pause(300);
    await enabled.change(true, () => root.persist(({ auth }) => auth.authEnable({})));
    await root.logIn();
  }

  /** Resolves when the client of the user that keeps its permission has been allowed that many requests more. */
  async progress(count = 100): Promise<void> {
    const target = this.judge.counts.allowed + count;
    const untilMs = performance.now() + 30_000;
    while (this.judge.counts.allowed < target) {
      if (performance.now() > untilMs) throw new Error(`no ${count} requests were allowed within 30 s`);
      await pause(20);
    }
  }

  /**
   * Ends the load, and returns all violations. `allowanceMs`: the time between two times without a leader, or without
   * the machine.
   */
  async finish(allowanceMs: (fromMs: number, toMs: number) => number): Promise<readonly string[]> {
    for (const lease of this.#leases) await lease.check(this.#root.any);
    await this.stop();
    for (const { user, watch } of this.watches) {
      if (watch.eventCount === 0) this.judge.note(`a watch of ${user.name} was told of nothing`);
      const lost = [...user.permitted.lasting(false, watchEndsWithinMs)];
      for (const ackedMs of lost) {
        const endMs = ackedMs + watchEndsWithinMs;
        const allowedMs = endMs + allowanceMs(ackedMs, endMs);
        const isDisabled = this.judge.enabled.possible(ackedMs, allowedMs).includes(false);
        const isBack = user.permitted.possible(ackedMs + 1, allowedMs).includes(true);
        if (isDisabled || isBack || !watch.isOpen(ackedMs, allowedMs)) continue;
        this.judge.note(`a watch of ${user.name} was open ${allowedMs - ackedMs} ms after it lost the permission`);
      }
    }
    return this.judge.violations;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const lease of this.#leases) lease.stop();
    await Promise.all([
      this.#writing,
      ...this.#clients.map((client) => client.stop()),
      ...this.watches.map(({ watch }) => watch.stop()),
    ]);
    this.#connections.close();
  }

  /** By the permission of the role, or by the role of the user. */
  async #revoke(round: number): Promise<void> {
    const { name, permitted } = this.#flip;
    const root = this.#root;
    const keys = permissionOf(name);
    const byRole = round % 2 === 0;
    await permitted.change(false, () =>
      byRole
        ? root.persist(
            ({ auth }) => auth.roleRevokePermission({ role: name, key: keys.key, rangeEnd: keys.rangeEnd }),
            'etcdserver: permission is not granted to the role',
          )
        : root.persist(
            ({ auth }) => auth.userRevokeRole({ name, role: name }),
            'etcdserver: role is not granted to the user',
          ),
    );
    await pause(lastingMs);
    await permitted.change(true, () =>
      root.persist(({ auth }) =>
        byRole ? auth.roleGrantPermission({ name, perm: keys }) : auth.userGrantRole({ user: name, role: name }),
      ),
    );
  }

  async #delete(): Promise<void> {
    const user = this.#gone;
    const { name, permitted, credential } = user;
    const root = this.#root;
    const version = credential.last + 1;
    await permitted.change(false, () =>
      credential.change(0, () =>
        root.persist(({ auth }) => auth.userDelete({ name }), 'etcdserver: user name not found'),
      ),
    );
    await pause(lastingMs);
    this.#versions.set(user, Math.max(this.#versions.get(user) ?? 1, version) + 1);
    const next = this.#versions.get(user) as number;
    const password = user.password(next);
    await credential.change(next, () =>
      root.persist(({ auth }) => auth.userAdd({ name, password }), 'etcdserver: user name already exists'),
    );
    await permitted.change(true, () => root.persist(({ auth }) => auth.userGrantRole({ user: name, role: name })));
  }

  /** The last credential of a user who was deleted meanwhile. */
  readonly #versions = new Map<UserFacts, number>();

  async #changePassword(): Promise<void> {
    const user = this.#pass;
    const { name, credential } = user;
    const password = user.password(credential.last + 1);
    await credential.change(credential.last + 1, () =>
      this.#root.persist(({ auth }) => auth.userChangePassword({ name, password })),
    );
  }

  /** Root writes to the keys of all users, for the watches. */
  async #write(): Promise<void> {
    while (!this.#stopped) {
      for (const { name } of this.#users) {
        const value = Buffer.from(`written at ${performance.now()}`);
        const key = Buffer.from(`${name}/watched`);
        await outcomeOf(this.#root.any.kv.put({ key, value }, { deadlineMs: 10_000 }));
      }
      await pause(writePauseMs);
    }
  }
}
