import type { MessageInitShape } from '@bufbuild/protobuf';
import type { etcdserverpb } from '@tenure/protocol';
import { KeepAliveStream } from '../../conformance/client/keep-alive-stream.ts';
import { Code, Refusal } from '../../conformance/client/refusal.ts';
import type { AnonymousAccess } from './anonymous-access.ts';
import { type AccessJudge, texts, type Token, type UserFacts } from './access-judge.ts';

/** Between two requests of one client. */
const pauseMs = 20;
const callDeadlineMs = 30_000;
/** Until the next attempt to log in. */
const retryMs = 50;

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
export const metadataOf = (token: Token | undefined): Record<string, string> =>
  token === undefined ? {} : { token: token.text };

export interface AccessClientOptions {
  readonly judge: AccessJudge;
  /** Undefined for a client without an identity. */
  readonly user: UserFacts | undefined;
  readonly servers: () => readonly AnonymousAccess[];
  /** Of a lease that has a key of the user. */
  readonly leaseId: bigint;
}

type Request = (member: AnonymousAccess, options: { metadata: Record<string, string> }) => Promise<unknown>;

/** Requests of one user, through all servers in turn, until it is stopped. All of them use the same token. */
export class AccessClient {
  readonly #options: AccessClientOptions;
  readonly #requests: readonly (readonly [name: string, send: Request])[];
  #token: Token | undefined;
  #loggingIn: Promise<void> | undefined;
  #stopped = false;
  readonly #lanes: Promise<void>[] = [];

  constructor(options: AccessClientOptions) {
    this.#options = options;
    this.#requests = requestsOn(`${options.user?.name ?? 'keep'}/`, options.leaseId);
    for (let lane = 0; lane < 3; lane += 1) this.#lanes.push(this.#run(lane));
  }

  get token(): Token | undefined {
    return this.#token;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#lanes);
  }

  /** After the identity was refused; once for all lanes. Without success, the next request is sent as before. */
  logIn(): Promise<void> {
    this.#loggingIn ??= this.#logIn().finally(() => (this.#loggingIn = undefined));
    return this.#loggingIn;
  }

  async #run(lane: number): Promise<void> {
    const { judge, user, servers } = this.#options;
    for (let round = lane; !this.#stopped; round += 1) {
      await pause(pauseMs);
      const members = servers();
      const member = members[round % members.length];
      const [what, send] = this.#requests[round % this.#requests.length] ?? [];
      if (member === undefined || what === undefined || send === undefined) continue;
      const token = this.#token;
      const beganMs = performance.now();
      const { code, details } = await outcomeOf(send(member, { metadata: metadataOf(token) }));
      const endedMs = performance.now();
      const answer = { what, server: member.name, token, beganMs, endedMs, code, details };
      const isKnown = judge.judge(user, answer);
      if (!isKnown && user !== undefined && token === this.#token) await this.logIn();
    }
  }

  async #logIn(): Promise<void> {
    const { judge, user, servers } = this.#options;
    const members = servers();
    const member = members[Math.floor(Math.random() * members.length)];
    if (user === undefined || member === undefined) return;
    const beganMs = performance.now();
    const [version = 0, ...others] = user.credential.possible(beganMs, Infinity);
    // A server makes all clients of an address wait after a few wrong passwords.
    if (version === 0 || others.length > 0) return await pause(retryMs);
    try {
      const { token } = await member.auth.authenticate(
        { name: user.name, password: user.password(version) },
        { deadlineMs: callDeadlineMs },
      );
      const isMeant = user.credential.possible(beganMs, performance.now()).includes(version);
      if (!isMeant) judge.note(`${user.name} has logged in with an old password`);
      this.#token = { text: token, version, beganMs };
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const isWrong = error.code === Code.invalidArgument && error.details !== texts.old;
      const credentials = user.credential.possible(beganMs, performance.now());
      if (isWrong && credentials.every((one) => one === version)) {
        judge.note(`${user.name} could not log in with password ${version}: ${error.message}`);
      }
      await pause(retryMs);
    }
  }
}

export async function outcomeOf(call: Promise<unknown>): Promise<{ code: number; details: string }> {
  try {
    await call;
    return { code: Code.ok, details: '' };
  } catch (error) {
    if (error instanceof Refusal) return { code: error.code, details: error.details };
    throw error;
  }
}

/** Requests that take the permissions to read and write the keys with that prefix. */
function requestsOn(prefix: string, leaseId: bigint): (readonly [string, Request])[] {
  const key = (name: string): Buffer => Buffer.from(`${prefix}${name}`);
  const range = { key: key(''), rangeEnd: key('~') };
  const put = { case: 'requestPut', value: { key: key('txn'), value: key('1') } } as const;
  const read = { case: 'requestRange', value: range } as const;
  const txn = (request: typeof put | typeof read): MessageInitShape<typeof etcdserverpb.TxnRequestSchema> => ({
    compare: [{ key: key('compared') }],
    success: [{ request }],
    failure: [{ request: { case: 'requestTxn', value: { success: [{ request: read }] } } as const }],
  });
  return [
    ['put', ({ kv }, options) => kv.put({ key: key('put'), value: key('1') }, options)],
    ['range', ({ kv }, options) => kv.range(range, options)],
    ['txn', ({ kv }, options) => kv.txn(txn(put), options)],
    ['read txn', ({ kv }, options) => kv.txn(txn(read), options)],
    ['delete', ({ kv }, options) => kv.deleteRange({ key: key('txn'), prevKv: true }, options)],
    ['keep-alive', ({ client }, { metadata }) => renewed(new KeepAliveStream(client, { metadata }), leaseId)],
    ['lease keys', ({ lease }, options) => lease.leaseTimeToLive({ ID: leaseId, keys: true }, options)],
    ['leased put', ({ kv }, options) => kv.put({ key: key('leased'), lease: leaseId, value: key('1') }, options)],
  ];
}

async function renewed(stream: KeepAliveStream, id: bigint): Promise<void> {
  const ended = stream.ended.then((status) => {
    throw new Refusal(status);
  });
  // After the renewal the end of the stream is of no interest.
  ended.catch(() => undefined);
  const reply = stream.renew(id);
  reply.catch(() => undefined);
  try {
    const { TTL } = await Promise.race([reply, ended]);
    if (TTL === 0n) throw new Refusal({ code: Code.notFound, details: `the lease ${id} has ended` });
  } catch (error) {
    throw error instanceof Refusal ? error : new Refusal(await stream.ended);
  } finally {
    stream.close();
  }
}
