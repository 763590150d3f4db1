import { anonymous, type AuthChange, invalidToken, oldToken, type Requester, StateMachine } from '@tenure/core';
import { rpcMethods } from '@tenure/protocol';
import { describe, expect, test } from 'vitest';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';
import { testConnection } from '@tenure/test-support';
import type { Call, MethodHandler } from '../transport/transport.ts';
import { ScriptedCall } from '../watch/testing/scripted-call.ts';
import { AccessGuard } from './access-guard.ts';
import { methodAccess } from './method-access.ts';

const put = '/etcdserverpb.KV/Put';
const status = '/etcdserverpb.Maintenance/Status';
const snapshot = '/etcdserverpb.Maintenance/Snapshot';
const watch = '/etcdserverpb.Watch/Watch';

const setUp = [
  { kind: 'addUser', user: 'root', passwordHash: 'x', noPassword: false },
  { kind: 'grantRole', user: 'root', role: 'root' },
  { kind: 'addUser', user: 'ann', passwordHash: 'x', noPassword: false },
] as const;

/** A state with the users root and ann, and a guard before handlers that tell who asks. */
function guarded({ enabled = true } = {}) {
  const state = new StateMachine();
  for (const change of [...setUp, ...(enabled ? [{ kind: 'enable' } as const] : [])]) {
    state.apply({ index: state.appliedIndex + 1, epoch: 0, timeMs: 0, commands: [{ kind: 'auth', change }] });
  }
  let answer: Requester | Promise<Requester> = anonymous;
  let isBehindBy: AuthChange | undefined;
  const seen: unknown[] = [];
  const unary: MethodHandler = {
    kind: 'unary',
    handle: (_request, call) => (seen.push(call.requester), Buffer.alloc(0)),
  };
  const stream: MethodHandler = {
    kind: 'serverStream',
    handle: async (_request, call) => void seen.push(call.requester),
  };
  const bidi: MethodHandler = {
    kind: 'bidi',
    handle: (call) => {
      call.onMessage = (message) => {
        seen.push([message.toString(), call.requester]);
        if (message.toString() === 'pause') call.pause();
      };
      call.onHalfClose = () => seen.push('half-closed');
    },
  };
  const user = (name: string, authRevision = state.auth.revision): Requester => ({ user: name, authRevision });
  const applied = (change: AuthChange): void => {
    const command = { kind: 'auth', change, by: user('root') } as const;
    state.apply({ index: state.appliedIndex + 1, epoch: 0, timeMs: 0, commands: [command] });
  };
  const caughtUp = (): Promise<void> | undefined => {
    const change = isBehindBy;
    isBehindBy = undefined;
    return change && Promise.resolve().then(() => applied(change));
  };
  const guard = new AccessGuard({ state, authenticator: { requesterOf: () => answer }, caughtUp });
  const routes = guard.guard(
    new Map<string, MethodHandler>([
      [put, unary],
      [status, unary],
      [snapshot, stream],
      [watch, bidi],
    ]),
  );
  const become = (next: typeof answer): void => {
    answer = next;
  };
  /** A change that another server has acknowledged, and this one has not applied. */
  const fallBehind = (change: AuthChange): void => {
    isBehindBy = change;
  };
  return { routes, seen, user, become, fallBehind, applied };
}

function call(path: string): Call {
  return {
    path,
    metadata: {},
    deadlineMs: Infinity,
    signal: new AbortController().signal,
    connection: testConnection(),
  };
}

async function ask(routes: ReturnType<typeof guarded>['routes'], path: string, token?: string): Promise<string> {
  const handler = routes.get(path);
  const metadata = token === undefined ? {} : { token };
  try {
    if (handler?.kind === 'unary') await handler.handle(Buffer.alloc(0), { ...call(path), metadata });
    if (handler?.kind === 'serverStream') await handler.handle(Buffer.alloc(0), call(path), async () => {});
    return 'answered';
  } catch (error) {
    if (error instanceof GrpcStatus) return error.message;
    throw error;
  }
}

describe('the table of access', () => {
  test('has a row for each method of the API, and no other', () => {
    expect(Object.keys(methodAccess).sort()).toEqual([...rpcMethods.keys()].sort());
  });

  test('a method without a row keeps the server from starting', () => {
    const guard = new AccessGuard({
      state: new StateMachine(),
      authenticator: { requesterOf: () => anonymous },
      caughtUp: () => undefined,
    });
    const routes = new Map<string, MethodHandler>([['/t.T/New', { kind: 'unary', handle: () => Buffer.alloc(0) }]]);
    expect(() => guard.guard(routes)).toThrow('/t.T/New');
  });
});

describe('a guarded call', () => {
  test('passes untouched while authentication is disabled', async () => {
    const { routes, seen, become } = guarded({ enabled: false });
    become(invalidToken);
    expect(await ask(routes, snapshot)).toBe('answered');
    expect(await ask(routes, put)).toBe('answered');
    expect(seen).toEqual([undefined, undefined]);
  });

  test('with a token gets its requester on a server that does not know yet of authentication', async () => {
    const { routes, seen, user, become, fallBehind } = guarded({ enabled: false });
    become(user('ann'));
    fallBehind({ kind: 'enable' });
    expect(await ask(routes, put, 'a token')).toBe('answered');
    expect(seen).toEqual([user('ann')]);
  });

  test('of a method for users or for root is refused before its handler has it', async () => {
    const { routes, seen, user, become } = guarded();
    const outcomes: string[] = [];
    for (const requester of [anonymous, invalidToken, user('stranger'), user('ann'), user('root')]) {
      become(requester);
      outcomes.push(`${await ask(routes, status)}, ${await ask(routes, snapshot)}`);
    }
    expect(outcomes).toEqual([
      'etcdserver: user name is empty, etcdserver: user name is empty',
      'etcdserver: invalid auth token, etcdserver: invalid auth token',
      'etcdserver: permission denied, etcdserver: permission denied',
      'answered, etcdserver: permission denied',
      'answered, answered',
    ]);
    expect(seen).toEqual([user('ann'), user('root'), user('root')]);
  });

  test('of a method that depends on keys has its requester, also one that is looked up elsewhere', async () => {
    const { routes, seen, user, become } = guarded();
    become(Promise.resolve(user('ann')));
    await ask(routes, put);
    become(user('ann', 1));
    await ask(routes, put);
    expect(seen).toEqual([user('ann'), oldToken]);
  });
});

describe('on a server that has not applied the last change of authentication', () => {
  test('a method for root is refused once authentication was enabled', async () => {
    const { routes, seen, fallBehind } = guarded({ enabled: false });
    fallBehind({ kind: 'enable' });
    expect(await ask(routes, snapshot)).toBe('etcdserver: user name is empty');
    expect(seen).toEqual([]);
  });

  test.each([put, status, snapshot])('%s is answered without an identity once it was disabled', async (path) => {
    for (const requester of [anonymous, invalidToken]) {
      const { routes, seen, become, fallBehind } = guarded();
      become(requester);
      fallBehind({ kind: 'disable' });
      expect(await ask(routes, path)).toBe('answered');
      expect(seen).toEqual([undefined]);
    }
  });

  test('a token of a past auth revision is no longer old once it was disabled', async () => {
    const { routes, seen, user, become, fallBehind } = guarded();
    become(user('ann', 1));
    fallBehind({ kind: 'disable' });
    expect(await ask(routes, put)).toBe('answered');
    expect(seen).toEqual([undefined]);
  });
});

describe('the messages of a guarded stream', () => {
  const open = (routes: ReturnType<typeof guarded>['routes']): ScriptedCall => {
    const scripted = new ScriptedCall(1_000);
    const handler = routes.get(watch);
    if (handler?.kind === 'bidi') handler.handle(scripted);
    return scripted;
  };

  test('each name the requester of their moment', () => {
    const { routes, seen, user, become, applied } = guarded();
    const stream = open(routes);
    become(user('ann'));
    stream.requestRaw(Buffer.from('1'));
    become(invalidToken);
    stream.requestRaw(Buffer.from('2'));
    applied({ kind: 'disable' });
    stream.requestRaw(Buffer.from('3'));
    expect(seen).toEqual([
      ['1', user('ann', 4)],
      ['2', invalidToken],
      ['3', undefined],
    ]);
  });

  test('arrive in order and intact, while a token is looked up elsewhere and while the handler pauses', async () => {
    const { routes, seen, user, become } = guarded();
    const stream = open(routes);
    become(Promise.resolve(user('ann')));
    stream.requestRaw(Buffer.from('pause'));
    stream.requestRaw(Buffer.from('second'));
    await Promise.resolve();
    await Promise.resolve();
    await Promise.resolve();
    expect(seen).toEqual([['pause', user('ann')]]);
    become(user('root'));
    stream.resume();
    expect(seen).toEqual([
      ['pause', user('ann')],
      ['second', user('root')],
    ]);
  });

  test('leave the earlier ones their requester while a token is looked up elsewhere', async () => {
    const { routes, user, become } = guarded();
    const stream = open(routes);
    void become(user('ann'));
    stream.requestRaw(Buffer.from('1'));
    void become(new Promise<Requester>(() => {}));
    stream.requestRaw(Buffer.from('2'));
    expect(stream.requester).toEqual(user('ann'));
  });

  test('do not reach the handler after the end of the call', async () => {
    const { routes, seen, user, become } = guarded();
    const stream = open(routes);
    become(Promise.resolve(user('ann')));
    stream.requestRaw(Buffer.from('1'));
    stream.disconnect();
    await new Promise(setImmediate);
    expect(seen).toEqual([]);
  });

  test('end the call when the token cannot be looked up', async () => {
    const { routes, become } = guarded();
    const stream = open(routes);
    become(Promise.reject(new GrpcStatus(GrpcCode.unavailable, 'etcdserver: no leader')));
    stream.requestRaw(Buffer.from('1'));
    await new Promise(setImmediate);
    expect(stream.status?.message).toBe('etcdserver: no leader');
  });
});
