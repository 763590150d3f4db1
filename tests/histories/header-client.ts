import { WatchStream } from '../../conformance/client/watch-stream.ts';
import type { ClusterMember } from '../cluster/cluster-member.ts';
import { revisionOf, type KvClientOptions } from './kv-client.ts';
import { timed } from './recorded-history.ts';

const options = { deadlineMs: 2_000 };
const pauseMs = { min: 4, max: 24 };
const key = Buffer.from('hot/0');

type Header = Parameters<typeof revisionOf>[0];

/** Calls that a server answers from its own memory, after it has caught up with the leader. */
const fromMemory: ReadonlySet<string> = new Set([
  'Status',
  'HashKV',
  'Alarm',
  'MemberList',
  'Watch, created',
  'Watch, progress',
]);
/**
 * A server that cannot reach the leader answers from its own knowledge after this delay, about itself or about the
 * store; the client knows that from the delay. The limit is a little shorter here, since timers may fire early.
 */
const patienceMs = 490;

/** Every call beside those of the other clients whose reply has a header and that changes nothing. */
const calls: readonly (readonly [name: string, call: (member: ClusterMember) => Promise<Header>])[] = [
  ['Range', async ({ kv }) => (await kv.range({ key }, options)).header],
  [
    'Txn that reads',
    async ({ kv }) =>
      (await kv.txn({ success: [{ request: { case: 'requestRange', value: { key } } }] }, options)).header,
  ],
  ['LeaseLeases', async ({ lease }) => (await lease.leaseLeases({}, options)).header],
  ['LeaseTimeToLive of no lease', async ({ lease }) => (await lease.leaseTimeToLive({ ID: 1n }, options)).header],
  ['Status', async ({ maintenance }) => (await maintenance.status({}, options)).header],
  ['HashKV', async ({ maintenance }) => (await maintenance.hashKV({}, options)).header],
  ['Alarm', async ({ maintenance }) => (await maintenance.alarm({ action: 0 }, options)).header],
  ['MemberList', async ({ cluster }) => (await cluster.memberList({ linearizable: true }, options)).header],
  ['Watch, created', (member) => watchHeader(member, false)],
  ['Watch, progress', (member) => watchHeader(member, true)],
];

/** Calls every method with a header on every server, and records the revisions. */
export class HeaderClient {
  readonly #options: KvClientOptions;

  constructor(clientOptions: KvClientOptions) {
    this.#options = clientOptions;
  }

  async run(isOver: () => boolean): Promise<void> {
    const { random, members, history, number: client } = this.#options;
    while (!isOver()) {
      const standing = members();
      if (standing.length > 0) {
        const member = random.pick(standing);
        const [call, ask] = random.pick(calls);
        const { outcome, ...times } = await timed(() => ask(member));
        const gaveUp = fromMemory.has(call) && times.returnedMs - times.calledMs >= patienceMs;
        if (outcome.kind === 'known' && !gaveUp) {
          history.headers.push({ client, server: member.name, call, ...times, revision: revisionOf(outcome.output) });
        }
      }
      await new Promise((resolve) => setTimeout(resolve, random.integer(pauseMs.min, pauseMs.max)));
    }
  }
}

async function watchHeader(member: ClusterMember, progress: boolean): Promise<Header> {
  const stream = new WatchStream(member.client, options);
  try {
    const created = await stream.create({ key });
    return progress ? (await stream.progress()).header : created.header;
  } finally {
    stream.close();
  }
}
