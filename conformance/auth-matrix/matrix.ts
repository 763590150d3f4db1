import type { DescMethodBiDiStreaming } from '@bufbuild/protobuf';
import { etcdserverpb, type RpcMethod, rpcMethods } from '@tenure/protocol';
import {
  addRole,
  addUser,
  enableAuth,
  logIn,
  permitExactly,
  READ,
  READWRITE,
  rootContext,
  WRITE,
} from '../cases/accounts.ts';
import type { CaseContext } from '../cases/case-context.ts';
import type { Metadata } from '../client/grpc-client.ts';
import type { RunningServer } from '../servers/server-options.ts';
import { permittedEnd, permittedKey, requestsByMethod, Subject } from './requests.ts';

/** What each caller gets, by method, request and caller: `OK`, or the code and text of the refusal. */
export type AuthMatrix = Record<string, Record<string, Record<string, string>>>;

const users = {
  'a user without roles': [],
  'a reader': [permitExactly(READ, permittedKey, permittedEnd)],
  'a writer': [permitExactly(WRITE, permittedKey, permittedEnd)],
  'a reader and writer': [permitExactly(READWRITE, permittedKey, permittedEnd)],
} as const;

type Caller = (root: CaseContext) => Promise<Metadata>;

/** Who calls, and how it gets its token. */
const callers: Readonly<Record<string, Caller>> = {
  'no token': async () => ({}),
  'an invalid token': async () => ({ token: 'nonsense' }),
  'the token of a deleted user': async (root) => {
    const name = 'deleted';
    await addUser(root, name);
    const token = await logIn(root, name);
    await root.auth.userDelete({ name });
    return { token };
  },
  ...Object.fromEntries(
    Object.keys(users).map((name): [string, Caller] => [name, async (root) => ({ token: await logIn(root, name) })]),
  ),
  root: async (root) => ({ token: await logIn(root, 'root') }),
};

/** Calls every method of the protocol as every caller, one call at a time, on a new server that it turns auth on at. */
export async function authMatrixOf(server: RunningServer): Promise<AuthMatrix> {
  await enableAuth(server);
  const setup = await rootContext(server, 'setup/');
  for (const [name, permissions] of Object.entries(users)) {
    await addUser(setup, name);
    await addRole(setup, name, ...permissions);
    await setup.auth.userGrantRole({ user: name, role: name });
  }
  const matrix: AuthMatrix = {};
  let calls = 0;
  for (const method of rpcMethods.values()) {
    const requests = requestsByMethod.get(method.path) ?? {};
    for (const [label, request] of Object.entries(requests)) {
      for (const [caller, metadataOf] of Object.entries(callers)) {
        calls += 1;
        const root = await rootContext(server, `${calls}/`);
        const encoded = await request(new Subject(root, `${calls}`));
        const outcome = await outcomeOf(root.as(await metadataOf(root)), method, encoded);
        ((matrix[method.path] ??= {})[label] ??= {})[caller] = outcome;
        await root.close();
      }
    }
  }
  setup.client.close();
  return matrix;
}

async function outcomeOf(caller: CaseContext, method: RpcMethod, request: Uint8Array): Promise<string> {
  if (method.kind !== 'unary') return streamOutcome(caller, method, request);
  const outcome = await caller.client.unaryRaw(method.path, request);
  return outcome.ok ? 'OK' : `${outcome.code} ${outcome.details}`;
}

/** A stream is judged by the first thing that comes: a reply, or its end. */
async function streamOutcome(caller: CaseContext, method: RpcMethod, request: Uint8Array): Promise<string> {
  // A stream from the server alone is the same on the wire, with one request and the client's end after it.
  const stream = caller.client.bidi(method.descriptor as DescMethodBiDiStreaming);
  stream.sendRaw(request);
  if (method.kind === 'serverStream') stream.halfClose();
  const reply = stream.messages
    .take(`a reply of ${method.path}`, () => true)
    .then(
      (message) => ({ message }),
      () => stream.ended,
    );
  const first = await reply;
  if (!('message' in first)) return first.code === 0 ? 'OK without a reply' : `${first.code} ${first.details}`;
  stream.cancel();
  const { cancelReason } = first.message as Partial<etcdserverpb.WatchResponse>;
  return cancelReason ? `canceled: ${cancelReason}` : 'OK';
}
