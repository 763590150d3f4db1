import { authpb } from '@tenure/protocol';
import { Code, Refusal } from '../../conformance/client/refusal.ts';
import type { ClusterMember } from '../cluster/cluster-member.ts';
import { pause } from './access-client.ts';
import { texts } from './access-judge.ts';

const patienceMs = 60_000;
const retryMs = 50;
export const rootPassword = 'the password of root';

/** What root does, through any server: repeated until it is acknowledged. */
export class RootAccess {
  /** For the options of the servers: goes with their calls. */
  readonly metadata: { token?: string } = {};
  readonly #servers: () => readonly ClusterMember[];
  readonly #pick: (count: number) => number;

  /** `pick` draws a number from 0 up to, and not including, its argument. */
  constructor(servers: () => readonly ClusterMember[], pick: (count: number) => number) {
    this.#servers = servers;
    this.#pick = pick;
  }

  get any(): ClusterMember {
    const servers = this.#servers();
    return servers[this.#pick(servers.length)] as ClusterMember;
  }

  async logIn(server = this.any): Promise<void> {
    const request = { name: 'root', password: rootPassword };
    const { token } = await server.auth.authenticate(request, { deadlineMs: 30_000 });
    this.metadata.token = token;
  }

  /**
   * Resolves when one attempt is acknowledged. `isDone`: the refusal of a second attempt, when the first one was done
   * although its reply was lost.
   */
  async persist(ask: (server: ClusterMember) => Promise<unknown>, isDone?: string): Promise<void> {
    const untilMs = performance.now() + patienceMs;
    for (let isLost = false; ;) {
      try {
        await ask(this.any);
        return;
      } catch (error) {
        if (!(error instanceof Refusal) || performance.now() > untilMs) throw error;
        const { code, details } = error;
        if (isLost && details === isDone) return;
        if (details === texts.invalid || details === texts.empty || details === texts.old) {
          await this.logIn().catch(() => undefined);
        } else if (code === Code.unavailable || code === Code.deadlineExceeded) isLost = true;
        else throw error;
        await pause(retryMs);
      }
    }
  }

  /** The user root, and authentication enabled. */
  async enable(): Promise<void> {
    await this.persist(
      ({ auth }) => auth.userAdd({ name: 'root', password: rootPassword }),
      'etcdserver: user name already exists',
    );
    await this.persist(({ auth }) => auth.userGrantRole({ user: 'root', role: 'root' }));
    await this.persist(({ auth }) => auth.authEnable({}));
    await this.logIn();
  }

  /** A user with a role of the same name, which may read and write the keys below it. */
  async addUser(name: string, password: string): Promise<void> {
    await this.persist(({ auth }) => auth.userAdd({ name, password }), 'etcdserver: user name already exists');
    await this.persist(({ auth }) => auth.roleAdd({ name }), 'etcdserver: role name already exists');
    await this.persist(({ auth }) => auth.roleGrantPermission({ name, perm: permissionOf(name) }));
    await this.persist(({ auth }) => auth.userGrantRole({ user: name, role: name }));
  }
}

/** To read and write the keys below a name. */
export function permissionOf(name: string) {
  const { READWRITE } = authpb.Permission_Type;
  return { permType: READWRITE, key: Buffer.from(`${name}/`), rangeEnd: Buffer.from(`${name}0`) };
}
