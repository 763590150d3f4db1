import type { AlarmKind, CommandBody } from '@tenure/core';
import { etcdserverpb } from '@tenure/protocol';
import { decodeRequest, encodeFramed } from '@tenure/codec';
import type { ReplicaAccess } from '../replica/replica-access.ts';
import { snapshotHashBytes, writeSnapshotFile } from '../replica/snapshot-file.ts';
import { yieldToEventLoop } from '../time/yield-to-event-loop.ts';
import type { Clock } from '../time/clock.ts';
import { etcdVersion, tenureVersion } from '../version.ts';
import type { CommandRules } from './command-rules.ts';
import { type RequestedBy, requestedOfServers, throwRefused } from './requested.ts';
import { headerMessage } from './response-header.ts';
import type { Identity } from './identity.ts';
import { SharedHash } from './shared-hash.ts';
import { SnapshotSpool } from './snapshot-spool.ts';
import { statusNamed, statusOfCoreError } from './status-of.ts';
import { toSafeNumber } from './safe-number.ts';
import { GrpcCode, GrpcStatus, callIsOver } from '@tenure/grpc-server';
import type { Call } from '../transport/transport.ts';

export interface MaintenanceServiceOptions {
  readonly clock: Clock;
  readonly replica: ReplicaAccess;
  readonly identity: Identity;
  readonly rules: Pick<CommandRules, 'refusal'>;
  readonly quotaBytes: number;
  /** The current leader's member id, as far as this server knows; 0n without a leader. */
  readonly leaderId: () => bigint;
  /** The end of the log, as far as this server knows. */
  readonly logIndex: () => number;
  /** Why requests that need the leader or the log fail here now, as a text. */
  readonly problem: () => string | undefined;
}

/** The supported alarm types of the wire; all other numbers are unknown. */
const alarmKinds: ReadonlyMap<number, AlarmKind> = new Map([
  [etcdserverpb.AlarmType.NOSPACE, 'nospace'],
  [etcdserverpb.AlarmType.CORRUPT, 'corrupt'],
]);

/** Concurrent snapshots to clients: each is a file as large as the state, until its client has read it. */
const maxSnapshots = 8;
/** Of these, on one connection: a client that does not read must leave slots for others. */
const maxSnapshotsPerConnection = 2;

interface AlarmItem {
  readonly memberID: bigint;
  readonly alarm: etcdserverpb.AlarmType;
}

const versionForm = /^\d+\.\d+(?:\.\d+)?$/;
/** etcd's servers agree on a version without its last number. */
const clusterVersion = etcdVersion.replace(/\.\d+$/, '');

/** The file of an empty etcd has some pages too, and clients divide by its size. */
const leastBytes = 1;

/** etcd's Maintenance service. */
export class MaintenanceService {
  readonly #options: MaintenanceServiceOptions;
  readonly #hash: SharedHash;
  #snapshots = 0;
  readonly #snapshotsOf = new Map<object, number>();

  constructor(options: MaintenanceServiceOptions) {
    this.#options = options;
    this.#hash = new SharedHash(options.replica.state, options.clock);
  }

  status(): Buffer {
    const { replica, quotaBytes } = this.#options;
    const { state } = replica;
    const leader = this.#options.leaderId();
    return encodeFramed(etcdserverpb.StatusResponseSchema, {
      header: this.#header(),
      version: etcdVersion,
      storageVersion: etcdVersion,
      tenureVersion,
      dbSize: BigInt(Math.max(state.sizeBytes, leastBytes)),
      dbSizeInUse: BigInt(Math.max(state.sizeInUseBytes, leastBytes)),
      dbSizeQuota: BigInt(quotaBytes),
      leader,
      raftIndex: BigInt(Math.max(this.#options.logIndex(), state.appliedIndex)),
      raftAppliedIndex: BigInt(state.appliedIndex),
      raftTerm: BigInt(state.epoch),
      errors: [...this.#problems(leader), ...this.#alarmTexts()],
    });
  }

  /** etcd's text when there is no leader, and Tenure's for other faults. */
  #problems(leader: bigint): string[] {
    const problem = this.#options.problem();
    return [...(leader === 0n ? [statusNamed('NoLeader').message] : []), ...(problem === undefined ? [] : [problem])];
  }

  #alarmTexts(): string[] {
    return this.#options.replica.state.alarms.map(({ memberId, alarm }) => {
      // Go omits a 0.
      return `${memberId === 0n ? '' : `memberID:${memberId} `}alarm:${alarm.toUpperCase()} `;
    });
  }

  /** The hash is that of a snapshot, of the state that the header names. */
  async hash({ signal }: Pick<Call, 'signal'>): Promise<Buffer> {
    const { hash, revision, epoch } = await this.#hash.next(signal);
    const header = headerMessage(this.#options.identity, revision, epoch);
    return encodeFramed(etcdserverpb.HashResponseSchema, { header, hash });
  }

  hashKv(request: Buffer): Buffer {
    const { revision } = decodeRequest(etcdserverpb.HashKVRequestSchema, request);
    const result = this.#options.replica.state.hashKv(toSafeNumber(revision));
    if ('kind' in result) throw statusOfCoreError(result);
    return encodeFramed(etcdserverpb.HashKVResponseSchema, {
      header: this.#header(),
      hash: result.hash,
      compactRevision: BigInt(result.compactRevision),
      // Below all revisions the reply names the requested revision.
      hashRevision: revision < 0n ? revision : BigInt(result.hashRevision),
    });
  }

  /**
   * The state is in memory and the log is trimmed by snapshots: there is nothing to defragment, and no request is
   * delayed.
   */
  defragment(): Buffer {
    return encodeFramed(etcdserverpb.DefragmentResponseSchema, {});
  }

  /**
   * The log has one format, so there is no version to go down to. To cancel a downgrade succeeds in etcd without one,
   * too.
   */
  downgrade(request: Buffer): Buffer {
    const { action, version } = decodeRequest(etcdserverpb.DowngradeRequestSchema, request);
    const { VALIDATE, ENABLE, CANCEL } = etcdserverpb.DowngradeRequest_DowngradeAction;
    if (action === VALIDATE || action === ENABLE) {
      const isVersion = versionForm.test(version);
      throw statusNamed(isVersion ? 'InvalidDowngradeTargetVersion' : 'WrongDowngradeVersionFormat');
    }
    if (action !== CANCEL) throw statusNamed('UnknownMethod');
    return encodeFramed(etcdserverpb.DowngradeResponseSchema, { header: this.#header(), version: clusterVersion });
  }

  /** As in etcd an alarm may be raised for any member, also for 0 and for one that does not exist. */
  async alarm(request: Buffer, { requester }: RequestedBy): Promise<Buffer> {
    const { action, memberID, alarm } = decodeRequest(etcdserverpb.AlarmRequestSchema, request);
    const { GET, ACTIVATE, DEACTIVATE } = etcdserverpb.AlarmRequest_AlarmAction;
    const access = this.#options.replica.state.accessOf(requester);
    throwRefused(action === GET ? access?.user() : access?.root());
    if (action === GET) return this.#alarms(this.#list(alarm));
    const isRaise = action === ACTIVATE;
    // etcd's server stops at such a request, and again at each later start.
    if (!isRaise && action !== DEACTIVATE) throw unknownNumber('action of an alarm', action);
    const kind = alarmKinds.get(alarm);
    if (kind === undefined) {
      // etcd stores it without any use. Here servers of an earlier version would read it as another alarm.
      if (isRaise && alarm !== etcdserverpb.AlarmType.NONE) throw unknownNumber('type of an alarm', alarm);
      return this.#alarms([]);
    }
    const { replica, rules } = this.#options;
    const before = this.#list(alarm);
    const body: CommandBody = {
      kind: 'alarm',
      action: isRaise ? 'activate' : 'deactivate',
      memberId: memberID,
      alarm: kind,
    };
    const command = await requestedOfServers(body, requester, replica);
    const refused = rules.refusal(command);
    if (refused !== undefined) throw refused;
    const response = await replica.propose(command);
    if (response.kind === 'error') throw statusOfCoreError(response);
    // The reply to a deactivation has the alarm that it disarmed.
    const items = isRaise ? this.#list(alarm) : before;
    return this.#alarms(items.filter((each) => each.memberID === memberID));
  }

  /** Streams the state at this moment, while entries are applied, until its client disconnects. */
  async snapshot(
    { signal, connection }: Pick<Call, 'signal' | 'connection'>,
    send: (framed: Buffer) => Promise<void>,
  ): Promise<void> {
    const others = this.#snapshotsOf.get(connection) ?? 0;
    const isRefused = this.#snapshots >= maxSnapshots || others >= maxSnapshotsPerConnection;
    if (isRefused) throw statusNamed('TooManyRequests');
    this.#snapshots += 1;
    this.#snapshotsOf.set(connection, others + 1);
    try {
      await this.#sendSnapshot(signal, send);
    } finally {
      this.#snapshots -= 1;
      const left = (this.#snapshotsOf.get(connection) ?? 0) - 1;
      if (left > 0) this.#snapshotsOf.set(connection, left);
      else this.#snapshotsOf.delete(connection);
    }
  }

  async #sendSnapshot(signal: AbortSignal, send: (framed: Buffer) => Promise<void>): Promise<void> {
    const { replica, identity } = this.#options;
    const { state, position } = replica;
    const revision = state.currentRevision;
    const head = { format: 1, position, revision, clusterId: String(identity.clusterId), tenureVersion } as const;
    const header = headerMessage(identity, revision, state.epoch);
    const steps = state.snapshot();
    // The snapshot's versions are kept until it is written; if writing never began, it must be released here.
    const file = writeSnapshotFile(head, inSlices(steps, signal, this.#options.clock));
    const spool = await SnapshotSpool.fill(file).finally(() => steps.return());
    try {
      // As in etcd, the hash at the end does not count as content.
      let left = spool.sizeBytes - snapshotHashBytes;
      for await (const blob of spool.pieces()) {
        left = Math.max(0, left - blob.length);
        const message = { header, remainingBytes: BigInt(left), blob, version: etcdVersion };
        await send(encodeFramed(etcdserverpb.SnapshotResponseSchema, message));
      }
    } finally {
      await spool.close();
    }
  }

  #header(): ReturnType<typeof headerMessage> {
    const { replica, identity } = this.#options;
    return headerMessage(identity, replica.state.currentRevision, replica.state.epoch);
  }

  /** NONE means all. */
  #list(type: etcdserverpb.AlarmType): AlarmItem[] {
    return this.#options.replica.state.alarms
      .map(({ memberId, alarm }) => ({ memberID: memberId, alarm: typeOf(alarm) }))
      .filter(({ alarm }) => type === etcdserverpb.AlarmType.NONE || alarm === type);
  }

  #alarms(alarms: AlarmItem[]): Buffer {
    return encodeFramed(etcdserverpb.AlarmResponseSchema, { header: this.#header(), alarms });
  }
}

function typeOf(alarm: AlarmKind): etcdserverpb.AlarmType {
  return alarm === 'nospace' ? etcdserverpb.AlarmType.NOSPACE : etcdserverpb.AlarmType.CORRUPT;
}

function unknownNumber(what: string, number: number): GrpcStatus {
  return new GrpcStatus(GrpcCode.invalidArgument, `${number} is no ${what} that this server knows`);
}

async function* inSlices(steps: Iterable<Uint8Array>, signal: AbortSignal, clock: Clock): AsyncGenerator<Uint8Array> {
  for (const chunk of steps) {
    if (signal.aborted) throw callIsOver();
    yield chunk;
    await yieldToEventLoop(clock);
  }
}
