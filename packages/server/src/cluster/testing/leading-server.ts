import { startTestServer } from '@tenure/test-support';
import type { TransportLimits } from '@tenure/grpc-server';
import type { MethodHandler } from '../../transport/transport.ts';
import type { Replica } from '../../replica/replica.ts';
import { ReplicaPair } from '../../replica/testing/replica-pair.ts';
import { leaderName } from '../link/member-name.ts';
import { peerLinkPath, PeerService, type PeerServiceOptions } from '../leader/peer-service.ts';
import { systemClock } from '../../time/system-clock.ts';
import { systemRandom } from '../../random/system-random.ts';

const leaderRun = 77;
const leaderMemberId = 1n;
/** The longest delay of a timer. */
const never = 2 ** 31 - 1;

export interface LeadingServerOptions {
  readonly renew?: PeerServiceOptions['renew'];
  readonly answer?: PeerServiceOptions['answer'];
  readonly check?: PeerServiceOptions['check'];
  readonly limits?: Partial<TransportLimits>;
  /** Its log was created by a version before the limits of transactions. */
  readonly hasOldLog?: boolean;
  /** The interval of checks of its links. Without it, only the test runs checks. */
  readonly lookIntervalMs?: number;
}

/** A server that leads, as its peers see it: the real replica and the real service, on a socket. */
export class LeadingServer {
  readonly replica: Replica;
  readonly peers: PeerService;
  readonly address: string;
  readonly leader: string = leaderName(leaderMemberId, leaderRun);
  /** The warnings and errors that its transport has logged. */
  readonly logged: readonly string[];
  /** Whose addresses those are at which streams arrive from now on. */
  arriveAt: 'clients' | 'servers' = 'servers';
  readonly #pair: ReplicaPair;
  readonly #closeTransport: () => Promise<void>;

  private constructor(
    pair: ReplicaPair,
    replica: Replica,
    peers: PeerService,
    at: { address: string; logged: readonly string[]; close: () => Promise<void> },
  ) {
    this.#pair = pair;
    this.replica = replica;
    this.peers = peers;
    this.address = at.address;
    this.logged = at.logged;
    this.#closeTransport = at.close;
  }

  /** `members`: registered, beside the leader itself. */
  static async start(members: readonly bigint[], options: LeadingServerOptions = {}): Promise<LeadingServer> {
    const { renew = () => 5_000, answer = () => Buffer.alloc(5), limits = {}, lookIntervalMs = never } = options;
    const { check = () => undefined, hasOldLog = false } = options;
    const pair = new ReplicaPair();
    if (hasOldLog) await pair.beginWithoutLimits();
    const { replica } = await pair.join();
    await replica.whenApplied(1);
    await replica.claim({ leader: leaderName(leaderMemberId, leaderRun), leaderLeaseMs: 800 });
    for (const id of [leaderMemberId, ...members]) {
      await replica.propose({ kind: 'registerMember', id, name: `m${id}`, clientUrls: ['http://127.0.0.1:1'] });
    }
    const peers = new PeerService({
      clock: systemClock,
      random: systemRandom,
      replica,
      memberId: () => leaderMemberId,
      leaderId: leaderName(leaderMemberId, leaderRun),
      renew,
      answer,
      check,
      lookIntervalMs,
    });
    const link: MethodHandler = { kind: 'bidi', handle: (call) => peers.handle(call, server.arriveAt) };
    const { transport, port, logged } = await startTestServer(
      { [peerLinkPath]: link },
      limits,
      undefined,
      peerLinkPath,
    );
    const address = `127.0.0.1:${port}`;
    const server: LeadingServer = new LeadingServer(pair, replica, peers, {
      address,
      logged,
      close: () => transport.close({ graceMs: 200 }),
    });
    return server;
  }

  /** What a follower reads about it in the log. */
  get known() {
    const { clusterId, epoch, secret } = this.replica.state;
    return { url: `http://${this.address}`, leader: this.leader, clusterId, epoch, secret };
  }

  async close(): Promise<void> {
    this.peers.stop();
    await this.#closeTransport();
    await this.#pair.close();
  }
}
