import { create, type DescMessage, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import type { AuthChange } from '@tenure/core';
import { bytesFromLatin1 } from '@tenure/codec';
import { authpb, etcdserverpb } from '@tenure/protocol';
import type { NodeClock, SeededRandom } from '@tenure/test-support';
import { CallError, type ClientConnection } from '../world/client-connection.ts';
import type { Coverage } from '../world/coverage.ts';
import { plainHash } from '../world/plain-passwords.ts';
import type { AccessChecker } from './access-checker.ts';
import type { AccessStep } from './access-scenario.ts';
import { isForIdentity } from './account.ts';
import type { Passwords } from './passwords.ts';
import { refusalKind } from '../keys/refusal-kind.ts';

export interface AdministratorOptions {
  readonly connect: () => ClientConnection;
  readonly clock: NodeClock;
  readonly random: SeededRandom;
  readonly checker: AccessChecker;
  readonly coverage: Coverage;
  readonly passwords: Passwords;
}

const callLimitMs = 1_000;
const pauseMs = { min: 5, max: 150 };
const { READ, WRITE, READWRITE } = authpb.Permission_Type;
const typeNumbers = { read: READ, write: WRITE, readWrite: READWRITE };

/**
 * The client that administers users, roles and permissions: one change after the other, each requested again until it
 * is acknowledged, or refused for what exists.
 */
export class Administrator {
  readonly #options: AdministratorOptions;
  readonly #steps: AccessStep[] = [];
  #connection: ClientConnection | undefined;
  #isBusy = false;

  constructor(options: AdministratorOptions) {
    this.#options = options;
  }

  get isDone(): boolean {
    return !this.#isBusy && this.#steps.length === 0;
  }

  /** Each at its time, and after those before. */
  add(steps: readonly AccessStep[]): void {
    this.#steps.push(...steps);
    if (!this.#isBusy) void this.#next();
  }

  /** Leaves out what has not begun. */
  hurry(): void {
    this.#steps.length = 0;
  }

  async #next(): Promise<void> {
    const { clock } = this.#options;
    this.#isBusy = true;
    for (;;) {
      const step = this.#steps[0];
      if (step === undefined) break;
      const waitMs = step.atMs - clock.monotonicMs();
      if (waitMs > 0) await this.#pause(Math.min(waitMs, pauseMs.max));
      else {
        this.#steps.shift();
        await this.#carryOut(step);
      }
    }
    this.#isBusy = false;
  }

  async #carryOut({ change: asDrawn }: AccessStep): Promise<void> {
    const { checker, coverage, random, passwords } = this.#options;
    if ('password' in asDrawn) passwords.told(asDrawn.user, asDrawn.password);
    const from = checker.log.changeCount;
    const { method, bytes } = encoded(asDrawn);
    for (let attempts = 1; ; attempts += 1) {
      this.#connection ??= this.#options.connect();
      try {
        await this.#connection.call(`/etcdserverpb.Auth/${method}`, bytes, callLimitMs);
        checker.acknowledged(changeOf(asDrawn), from);
        coverage.count(`access: ${asDrawn.kind}`);
        if (checker.forbiddenWatches > 0) coverage.count('access: the permission of an open watch was revoked');
        return;
      } catch (error) {
        if (!(error instanceof CallError)) throw error;
        const isFinal = refusalKind(error) === 'notDone' && !isForIdentity(error.message) && isAboutChange(error);
        if (isFinal) {
          if ('password' in asDrawn && attempts === 1) passwords.refused(asDrawn.user, asDrawn.password);
          return;
        }
        if (!error.fromServer || error.code === 14 || random.chance(0.1)) this.#leave();
        await this.#pause(random.between(pauseMs.min, pauseMs.max));
      }
    }
  }

  #pause(forMs: number): Promise<void> {
    return new Promise((resolve) => this.#options.clock.after(forMs, resolve));
  }

  #leave(): void {
    this.#connection?.close();
    this.#connection = undefined;
  }
}

/** Invalid argument or failed precondition: the change does not fit what exists. Others pass. */
function isAboutChange({ code }: CallError): boolean {
  return code === 3 || code === 9;
}

/** As it is in the log. */
function changeOf(change: AccessStep['change']): AuthChange {
  switch (change.kind) {
    case 'addUser':
      return { kind: 'addUser', user: change.user, passwordHash: plainHash(change.password), noPassword: false };
    case 'changePassword':
      return { kind: 'changePassword', user: change.user, passwordHash: plainHash(change.password) };
    default:
      return change;
  }
}

interface Encoded {
  readonly method: string;
  readonly bytes: Uint8Array;
}

function encoded(change: AccessStep['change']): Encoded {
  const pb = etcdserverpb;
  switch (change.kind) {
    case 'enable':
      return message('AuthEnable', pb.AuthEnableRequestSchema, {});
    case 'disable':
      return message('AuthDisable', pb.AuthDisableRequestSchema, {});
    case 'addUser':
      return message('UserAdd', pb.AuthUserAddRequestSchema, { name: change.user, password: change.password });
    case 'deleteUser':
      return message('UserDelete', pb.AuthUserDeleteRequestSchema, { name: change.user });
    case 'changePassword': {
      const { user: name, password } = change;
      return message('UserChangePassword', pb.AuthUserChangePasswordRequestSchema, { name, password });
    }
    case 'grantRole':
      return message('UserGrantRole', pb.AuthUserGrantRoleRequestSchema, { user: change.user, role: change.role });
    case 'revokeRole':
      return message('UserRevokeRole', pb.AuthUserRevokeRoleRequestSchema, { name: change.user, role: change.role });
    case 'addRole':
      return message('RoleAdd', pb.AuthRoleAddRequestSchema, { name: change.role });
    case 'deleteRole':
      return message('RoleDelete', pb.AuthRoleDeleteRequestSchema, { role: change.role });
    case 'grantPermission': {
      const { type, key, rangeEnd } = change.permission;
      const perm = { permType: typeNumbers[type], key: bytesFromLatin1(key), rangeEnd: bytesFromLatin1(rangeEnd) };
      return message('RoleGrantPermission', pb.AuthRoleGrantPermissionRequestSchema, { name: change.role, perm });
    }
    case 'revokePermission': {
      const { role, key, rangeEnd } = change;
      const range = { key: bytesFromLatin1(key), rangeEnd: bytesFromLatin1(rangeEnd) };
      return message('RoleRevokePermission', pb.AuthRoleRevokePermissionRequestSchema, { role, ...range });
    }
  }
}

function message<Schema extends DescMessage>(method: string, schema: Schema, init: MessageInitShape<Schema>): Encoded {
  return { method, bytes: toBinary(schema, create(schema, init)) };
}
