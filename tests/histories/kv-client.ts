import { mvccpb, type etcdserverpb } from '@tenure/protocol';
import type { ClusterMember } from '../cluster/cluster-member.ts';
import type { SeededRandom } from '@tenure/test-support';
import type { KeyVersion, KvInput, KvOutput } from './kv-operation.ts';
import { timed, type RecordedHistory } from './recorded-history.ts';

/**
 * All keys of these clients: few, so that the clients conflict. They are adjacent, so that one range reads them all.
 */
const hotKeys: readonly string[] = ['hot/0', 'hot/1', 'hot/2', 'hot/3'];
const rangeEnd = Buffer.from('hot0');
/** Short enough that some calls get no answer during a fault. */
const deadlineMs = 1_000;
/** The pause between two calls of one client, so that the history stays small enough to check. */
const pauseMs = { min: 4, max: 24 };

export interface KvClientOptions {
  readonly number: number;
  /** The servers that may be asked now. */
  readonly members: () => readonly ClusterMember[];
  readonly random: SeededRandom;
  readonly history: RecordedHistory;
}

/** Makes one call after the other, each through any server, and records them. */
export class KvClient {
  readonly #options: KvClientOptions;
  /** The client's guess of each key's value, so that some of its swaps succeed. */
  readonly #believed = new Map<string, string | undefined>();
  #count = 0;

  constructor(options: KvClientOptions) {
    this.#options = options;
  }

  async run(isOver: () => boolean): Promise<void> {
    const { random, members } = this.#options;
    while (!isOver()) {
      const standing = members();
      if (standing.length > 0) await this.#call(random.pick(standing), this.#input());
      await new Promise((resolve) => setTimeout(resolve, random.integer(pauseMs.min, pauseMs.max)));
    }
  }

  #input(): KvInput {
    const { random } = this.#options;
    const key = random.pick(hotKeys);
    const roll = random.integer(0, 99);
    if (roll < 30) return { kind: 'get', keys: [key] };
    if (roll < 40) return { kind: 'get', keys: hotKeys };
    if (roll < 62) return { kind: 'put', writes: [[key, this.#newValue()]] };
    if (roll < 72) {
      const other = random.pick(hotKeys.filter((each) => each !== key));
      return {
        kind: 'put',
        writes: [
          [key, this.#newValue()],
          [other, this.#newValue()],
        ],
      };
    }
    if (roll < 78) return { kind: 'delete', key };
    return { kind: 'swap', key, expected: this.#believed.get(key), value: this.#newValue() };
  }

  async #call(member: ClusterMember, input: KvInput): Promise<void> {
    const { number: client, history } = this.#options;
    const server = member.name;
    const result = await timed(() => answerOf(member, input));
    history.kv.push({ client, server, input, ...result });
    const { outcome, calledMs, returnedMs } = result;
    if (outcome.kind !== 'known') return;
    const { revision, seen } = outcome.output;
    history.headers.push({ client, server, call: input.kind, calledMs, returnedMs, revision });
    if (input.kind === 'get' || input.kind === 'swap') {
      for (const [key, version] of seen) this.#believed.set(key, version?.value);
    }
  }

  #newValue(): string {
    this.#count += 1;
    return `${this.#options.number}-${this.#count}`;
  }
}

async function answerOf({ kv }: ClusterMember, input: KvInput): Promise<KvOutput> {
  const options = { deadlineMs };
  if (input.kind === 'get') {
    const [key = '', ...others] = input.keys;
    const reply = await kv.range({ key: Buffer.from(key), ...(others.length > 0 ? { rangeEnd } : {}) }, options);
    return { revision: revisionOf(reply.header), changed: false, seen: versionsOf(reply.kvs, input.keys) };
  }
  if (input.kind === 'delete') {
    const reply = await kv.deleteRange({ key: Buffer.from(input.key), prevKv: true }, options);
    const seen = versionsOf(reply.prevKvs, [input.key]);
    return { revision: revisionOf(reply.header), changed: reply.deleted > 0n, seen };
  }
  if (input.kind === 'swap') return await swap(kv, input);
  if (input.writes.length > 1) return await putAll(kv, input.writes);
  const [[key, value] = ['', '']] = input.writes;
  const reply = await kv.put({ key: Buffer.from(key), value: Buffer.from(value), prevKv: true }, options);
  const seen = versionsOf(reply.prevKv === undefined ? [] : [reply.prevKv], [key]);
  return { revision: revisionOf(reply.header), changed: true, seen };
}

async function putAll(kv: ClusterMember['kv'], writes: readonly (readonly [string, string])[]): Promise<KvOutput> {
  const success = writes.map(([key, value]) => putRequest(key, value));
  const reply = await kv.txn({ success }, { deadlineMs });
  const before = reply.responses.flatMap(({ response }) =>
    response.case === 'responsePut' && response.value.prevKv !== undefined ? [response.value.prevKv] : [],
  );
  const seen = versionsOf(
    before,
    writes.map(([key]) => key),
  );
  return { revision: revisionOf(reply.header), changed: true, seen };
}

/** If the key is as expected it is written, else read. A key that does not exist has the version 0. */
async function swap(kv: ClusterMember['kv'], input: Extract<KvInput, { kind: 'swap' }>): Promise<KvOutput> {
  const { expected, value } = input;
  const key = Buffer.from(input.key);
  const target =
    expected === undefined
      ? { target: 0 as const, targetUnion: { case: 'version' as const, value: 0n } }
      : { target: 3 as const, targetUnion: { case: 'value' as const, value: Buffer.from(expected) } };
  const reply = await kv.txn(
    {
      compare: [{ key, result: 0, ...target }],
      success: [putRequest(input.key, value)],
      failure: [{ request: { case: 'requestRange', value: { key } } }],
    },
    { deadlineMs },
  );
  const revision = revisionOf(reply.header);
  if (reply.succeeded) return { revision, changed: true, seen: new Map() };
  const read = reply.responses[0]?.response;
  const kvs = read?.case === 'responseRange' ? read.value.kvs : [];
  return { revision, changed: false, seen: versionsOf(kvs, [input.key]) };
}

function putRequest(key: string, value: string) {
  return {
    request: { case: 'requestPut' as const, value: { key: Buffer.from(key), value: Buffer.from(value), prevKv: true } },
  };
}

/** The versions of the keys in a reply. */
function versionsOf(kvs: readonly mvccpb.KeyValue[], keys: readonly string[]): Map<string, KeyVersion | null> {
  const found = new Map<string, KeyVersion | null>(keys.map((key) => [key, null]));
  for (const kv of kvs) found.set(Buffer.from(kv.key).toString(), keyVersion(kv));
  return found;
}

export function keyVersion(kv: mvccpb.KeyValue): KeyVersion {
  return {
    value: Buffer.from(kv.value).toString(),
    createRevision: Number(kv.createRevision),
    modRevision: Number(kv.modRevision),
    version: Number(kv.version),
    lease: kv.lease,
  };
}

export function revisionOf(header: etcdserverpb.ResponseHeader | undefined): number {
  if (header === undefined) throw new Error('a reply has no header');
  return Number(header.revision);
}
