import {
  type AuthChange,
  type CommandBody,
  type CommandResponse,
  type Permission,
  type RequestOp,
  type Requester,
  rootName,
  StateMachine,
} from '@tenure/core';
import { responseHeaderPrefix } from '@tenure/codec';
import { WatchService, type WatchServiceOptions } from '../watch-service.ts';
import { ScriptedCall } from './scripted-call.ts';
import { systemClock } from '../../time/system-clock.ts';
import { systemRandom } from '../../random/system-random.ts';

/** Its commands are never too old. */
const root: Requester = { user: rootName, authRevision: Number.MAX_SAFE_INTEGER };

/** A state machine with a watch service on it, and calls with scripted clients. */
export class WatchBench {
  readonly state = new StateMachine();
  readonly service: WatchService;
  #index = 0;

  /** Slices are long unless the test says otherwise: results must not depend on the load of the machine. */
  constructor(options: Partial<WatchServiceOptions> = {}) {
    this.service = new WatchService({
      clock: systemClock,
      random: systemRandom,
      history: this.state.history,
      access: this.state,
      headerPrefix: responseHeaderPrefix(7n, 8n),
      raftTerm: () => 3,
      maxRequestBytes: 1024 * 1024,
      progressNotifyIntervalMs: 600_000,
      ...options,
      limits: { sliceMs: 10_000, ...options.limits },
    });
  }

  get revision(): number {
    return this.state.history.currentRevision;
  }

  open(bufferBytes = 1024 * 1024): ScriptedCall {
    const call = new ScriptedCall(bufferBytes);
    this.service.handle(call);
    return call;
  }

  /** The user, as the access guard names them to the service; without a name, a client without an identity. */
  requester(user = ''): Requester {
    return { user, authRevision: user === '' ? 0 : this.state.auth.revision };
  }

  /** Applies one entry of the log by root, and tells the service as the server does. */
  apply(...commands: CommandBody[]): readonly CommandResponse[] {
    this.#index += 1;
    const { responses, firstRevision, lastRevision } = this.state.apply({
      index: this.#index,
      epoch: 0,
      timeMs: 0,
      commands: commands.map((command) => ({ ...command, by: root })),
    });
    if (lastRevision >= firstRevision) this.service.revisionAdvanced();
    else this.service.recheckPermissions();
    return responses;
  }

  /** Changes of the auth data, in one entry. */
  change(...changes: AuthChange[]): readonly CommandResponse[] {
    return this.apply(...changes.map((change): CommandBody => ({ kind: 'auth', change })));
  }

  enableAuth(): void {
    this.addUser(rootName);
    this.change({ kind: 'grantRole', user: rootName, role: rootName }, { kind: 'enable' });
  }

  /** A user with a role of the same name, which has these permissions. */
  addUser(user: string, ...permissions: Permission[]): void {
    this.change(
      { kind: 'addUser', user, passwordHash: 'hash', noPassword: false },
      { kind: 'addRole', role: user },
      { kind: 'grantRole', user, role: user },
      ...permissions.map((permission): AuthChange => ({ kind: 'grantPermission', role: user, permission })),
    );
  }

  put(key: string, value = 'value'): void {
    this.apply({ kind: 'put', put: putOf(key, value) });
  }

  delete(key: string): void {
    this.apply({ kind: 'deleteRange', deleteRange: { key, rangeEnd: '', prevKv: false } });
  }

  /** Puts and deletes (value undefined) at one revision. */
  writeTogether(changes: readonly (readonly [key: string, value: string | undefined])[]): void {
    this.apply({ kind: 'txn', txn: { compare: [], success: changes.map(opOf), failure: [] } });
  }

  compact(revision: number): void {
    this.apply({ kind: 'compact', revision });
  }
}

/** Runs everything scheduled on the event loop until the service is idle. */
export async function settle(): Promise<void> {
  for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve));
}

function opOf([key, value]: readonly [string, string | undefined]): RequestOp {
  return value === undefined
    ? { kind: 'deleteRange', deleteRange: { key, rangeEnd: '', prevKv: false } }
    : { kind: 'put', put: putOf(key, value) };
}

function putOf(key: string, value: string) {
  return { key, value, lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
}
