import type { Member } from '@tenure/core';
import { formatUrl } from '../../config/listen-url.ts';
import { parseMemberUrl } from '../../config/member-address.ts';
import type { Random } from '../../random/random.ts';
import type { Clock } from '../../time/clock.ts';
import { every } from '../../time/every.ts';
import type { Acknowledged } from '../../engines/log-engine.ts';
import { type ClientReason, clientReasons } from '../../replica/client-reason.ts';
import type { Replica } from '../../replica/replica.ts';
import { GrpcCode } from '@tenure/grpc-server';
import type { LeaderView } from '../link/leader-view.ts';
import { LeaderConnection, type LeaderConnectionOptions } from './leader-connection.ts';
import type { OpenLeaderStream } from './leader-stream.ts';
import { memberOfLeader } from '../link/member-name.ts';

export interface LeaderFinderOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly open: OpenLeaderStream;
  readonly replica: Replica;
  readonly memberId: bigint;
  readonly run: number;
  /** This server's name in its claims. */
  readonly leaderId: string;
  /** See LogEngine.lookNow. */
  readonly lookNow: (acknowledged?: Acknowledged) => void;
  readonly onRenewed: LeaderConnectionOptions['onRenewed'];
  readonly onRenewalRefused: LeaderConnectionOptions['onRenewalRefused'];
  /** The connection was opened or closed. */
  readonly onLinked: (connection: LeaderConnection | undefined) => void;
  /** Reports an invalid registration, and why a leader cannot be reached, once for each. */
  readonly warn: (message: string) => void;
  /** Another process runs under this server's member id. */
  readonly onNameTaken: (message: string) => void;
}

/** The delay before the finder tries the leader's next address, or the same one again. */
const retryDelayMs = 100;
/** The interval at which a follower reports its applied index, which also shows that it is alive. */
const reportIntervalMs = 500;
/** A connection that is not accepted within this many of these intervals is closed. */
const maxIntervalsToWelcome = 6;

/** A leader that is unreachable for a shorter time is not reported. */
const quietMs = 2_000;

/** Limits on invalid addresses in a message; they may be of any number and length. */
const maxShownUrls = 4;
const maxShownChars = 100;

function quoted(urls: readonly string[]): string {
  return urls.map((url) => JSON.stringify(url.slice(0, maxShownChars))).join(', ');
}

/** The URL as servers dial it. Undefined for an invalid one; any server may have registered it. */
export function dialedUrl(url: string): string | undefined {
  const address = parseMemberUrl(url);
  return address && formatUrl(address);
}

/**
 * Keeps a follower connected to the leader that the log names, through the addresses that the leader has registered.
 */
export class LeaderFinder {
  readonly #options: LeaderFinderOptions;
  readonly #cancelReports: () => void;
  #connection: LeaderConnection | undefined;
  #linked = false;
  #tries = 0;
  /** Intervals that the connection has waited for acceptance. */
  #waits = 0;
  #cancelRetry: (() => void) | undefined;
  #stopped = false;
  #view: LeaderView = { index: 0, silent: [] };
  /** The registration that was last reported. */
  #reported: readonly string[] | undefined;
  /** Since when the leader of an epoch has been unreachable, and whether that was reported. */
  #unreachableLeader: { readonly epoch: number; readonly sinceMs: number; isReported: boolean } | undefined;

  constructor(options: LeaderFinderOptions) {
    this.#options = options;
    this.#cancelReports = every(options.clock, reportIntervalMs, () => {
      if (this.#linked) this.#connection?.report();
      else this.#wait();
    });
  }

  get connection(): LeaderConnection | undefined {
    return this.#linked ? this.#connection : undefined;
  }

  /** The leader's last view of the cluster. */
  get view(): LeaderView {
    return this.#view;
  }

  /** Why there is no connection to the leader; undefined while there is one, or no leader to connect to. */
  get problem(): ClientReason | undefined {
    const { replica, leaderId } = this.#options;
    const { leader, members } = replica.state;
    if (this.#linked || leader === leaderId || leader === '') return undefined;
    const member = members.find(({ id }) => id === memberOfLeader(leader));
    const isKnown = member !== undefined && this.#urlsOf(member).length > 0;
    return isKnown ? clientReasons.leaderUnreachable : clientReasons.leaderUnknown;
  }

  /** The leader or its addresses may have changed. To be called when a claim or a registration was applied. */
  look(): void {
    if (this.#stopped) return;
    const { replica, leaderId } = this.#options;
    const { epoch, leader } = replica.state;
    if (this.#connection !== undefined && this.#connection.epoch !== epoch) this.#drop();
    // Without a secret there is no proof. No server has created such a log.
    if (replica.state.secret === '') return;
    if (leader === '' || leader === leaderId || this.#connection !== undefined || this.#cancelRetry !== undefined)
      return;
    const member = replica.state.members.find(({ id }) => id === memberOfLeader(leader));
    const urls = member === undefined ? [] : this.#urlsOf(member);
    const url = urls[this.#tries % Math.max(1, urls.length)];
    if (url === undefined) return;
    this.#tries += 1;
    this.#waits = 0;
    this.#connect(epoch, url);
  }

  /** Skips invalid addresses: the log may hold any text that a server has registered. */
  #urlsOf({ name, clientUrls, peerUrls: registered = clientUrls }: Member): readonly string[] {
    const urls = registered.map(dialedUrl).filter((url) => url !== undefined);
    if (urls.length < registered.length && this.#reported !== registered) {
      this.#reported = registered;
      const shown = registered.filter((url) => parseMemberUrl(url) === undefined).slice(0, maxShownUrls);
      this.#options.warn(
        `the member ${name.slice(0, maxShownChars)} has registered an invalid address: ${quoted(shown)}`,
      );
    }
    return urls;
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelReports();
    this.#cancelRetry?.();
    this.#drop();
  }

  /** A network that drops every packet reports no error, and a connection attempt through it takes long to fail. */
  #wait(): void {
    this.#waits += 1;
    if (this.#connection !== undefined && this.#waits >= maxIntervalsToWelcome) {
      this.#unreachable('it does not answer');
      this.#drop();
    }
    this.look();
  }

  #connect(epoch: number, url: string): void {
    const { clock, random, open } = this.#options;
    const { replica, memberId, run, lookNow, onRenewed, onRenewalRefused, onLinked, onNameTaken } = this.#options;
    this.#connection = new LeaderConnection({
      clock,
      random,
      open,
      url,
      epoch,
      memberId,
      run,
      leader: replica.state.leader,
      clusterId: replica.state.clusterId,
      secret: replica.state.secret,
      appliedIndex: () => replica.position.index,
      onRenewed,
      onRenewalRefused,
      onReturned: (sequence, at) => replica.returned(sequence, at),
      onRefused: (sequence, error) => replica.refused(sequence, error),
      onView: (view) => (this.#view = view),
      onAppended: (index, acknowledged) => {
        if (index > replica.position.index) lookNow(acknowledged);
      },
      onWelcome: (connection) => {
        if (connection !== this.#connection) return;
        this.#linked = true;
        this.#unreachableLeader = undefined;
        replica.linked(connection);
        onLinked(connection);
      },
      onClosed: (connection, status) => {
        if (status.code === GrpcCode.alreadyExists) onNameTaken(status.details);
        if (connection !== this.#connection) return;
        this.#unreachable(status.details);
        this.#unlink();
        if (this.#stopped) return;
        this.#cancelRetry = clock.after(retryDelayMs, () => {
          this.#cancelRetry = undefined;
          this.look();
        });
      },
    });
  }

  /**
   * Warns the operator once, until the leader changes or is reached. A dead leader is not reported: the next one leads
   * before `quietMs` has passed.
   */
  #unreachable(why: string): void {
    const { replica, warn, clock } = this.#options;
    const { epoch, leader, members } = replica.state;
    if (this.#stopped || this.#connection?.epoch !== epoch) return;
    if (this.#unreachableLeader?.epoch !== epoch)
      this.#unreachableLeader = { epoch, sinceMs: clock.monotonicMs(), isReported: false };
    if (this.#unreachableLeader.isReported || clock.monotonicMs() - this.#unreachableLeader.sinceMs < quietMs) return;
    this.#unreachableLeader.isReported = true;
    const member = members.find(({ id }) => id === memberOfLeader(leader));
    const shown = (member === undefined ? [] : this.#urlsOf(member)).slice(0, maxShownUrls);
    const name = member?.name.slice(0, maxShownChars) ?? 'of this epoch';
    warn(`the leader ${name} (${shown.join(', ')}) cannot be reached: ${why}`);
  }

  #drop(): void {
    const connection = this.#connection;
    this.#unlink();
    connection?.close();
  }

  #unlink(): void {
    this.#connection = undefined;
    if (!this.#linked) return;
    this.#linked = false;
    this.#options.replica.linked(undefined);
    this.#options.onLinked(undefined);
  }
}
