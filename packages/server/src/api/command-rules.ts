import {
  identityRefusal,
  checkCompact,
  checkDeleteRange,
  checkPut,
  checkTxn,
  leaseOverheadBytes,
  maxTotalTxnOps,
} from '@tenure/core';
import type { Command, CoreError, StateMachine, TxnRequest } from '@tenure/core';
import { areMemberUrls, maxMemberNameChars } from '../config/member-address.ts';
import { authKind, peerUrlsKind } from '../replica/command-codec.ts';
import { mayPut, type QuotaGuard } from './quota-guard.ts';
import { statusNamed, statusOfCoreError } from './status-of.ts';
import { GrpcCode, GrpcStatus } from '@tenure/grpc-server';

export interface CommandRulesOptions {
  readonly state: () => Pick<StateMachine, 'alarms' | 'auth' | 'members'>;
  readonly quota: Pick<QuotaGuard, 'admit'>;
  readonly maxRequestBytes: number;
  readonly maxTxnOps: number;
  /** Whether every server of the cluster can apply commands of this kind, as far as this server has to know. */
  readonly canAllApply: (kind: number) => boolean;
}

/** Alarms in the state at once: a client may raise one for any member, and each stays until it is disarmed. */
const maxAlarms = 1_024;
/** Members in the state at once; an operator removes servers that no longer exist. */
const maxMembers = 1_024;
/** Tags, lengths and numbers beside the name of a requester. */
const requesterOverheadBytes = 32;
/** Of a user or a role. */
const maxNameBytes = 4_096;
/** Their size is chosen by clients; all other commands come from servers, and none of those may fail for its size. */
const ofClients: ReadonlySet<Command['kind']> = new Set(['put', 'deleteRange', 'txn', 'leaseGrant']);

/**
 * The rules that a command must pass to be appended to the log. Services check the requests of clients, and the leader
 * checks forwarded commands again: the sender may be of another version, have other limits, or not be a server.
 */
export class CommandRules {
  readonly #options: CommandRulesOptions;

  constructor(options: CommandRulesOptions) {
    this.#options = options;
  }

  /** The number of comparisons and ops of a transaction to decode: one more than the maximum. */
  get maxReadTxnOps(): number {
    return maxTotalTxnOps(this.#options.maxTxnOps) + 1;
  }

  /** Everything, for a forwarded command. */
  check(command: Command, payloadBytes: number): GrpcStatus | Promise<never> | undefined {
    const requestBytes = payloadBytes - requesterBytes(command);
    const tooLarge = ofClients.has(command.kind) ? this.sizeRefusal(requestBytes) : undefined;
    return this.refusal(command) ?? tooLarge ?? this.admit(command, requestBytes);
  }

  /**
   * Why the command may not be proposed, regardless of its size; undefined when it may. A client without an identity
   * gets no command into the log, which it could fill otherwise; as in etcd, faults of the request come first.
   */
  refusal(command: Command): GrpcStatus | undefined {
    const { by } = command;
    return this.#requestRefusal(command) ?? (by === undefined ? undefined : statusOrNone(identityRefusal(by)));
  }

  #requestRefusal(command: Command): GrpcStatus | undefined {
    switch (command.kind) {
      case 'put':
        return statusOrNone(checkPut(command.put));
      case 'deleteRange':
        return statusOrNone(checkDeleteRange(command.deleteRange));
      case 'txn':
        return this.txnRefusal(command.txn);
      case 'compact':
        return statusOrNone(checkCompact(command.revision));
      case 'leaseGrant':
        return isGrant(command) ? undefined : invalid('a lease needs an id that is not 0, and a TTL of 1 ms or more');
      case 'registerMember':
        return this.#memberRefusal(command) ?? this.versionRefusal(command);
      case 'auth':
        return this.#authRefusal(command) ?? this.versionRefusal(command);
      case 'alarm':
        return command.action === 'activate' && this.#options.state().alarms.length >= maxAlarms
          ? statusNamed('TooManyRequests')
          : undefined;
      default:
        return undefined;
    }
  }

  txnRefusal(txn: TxnRequest): GrpcStatus | undefined {
    return statusOrNone(checkTxn(txn, this.#options.maxTxnOps));
  }

  /** Why a request of that size may not be proposed. */
  sizeRefusal(requestBytes: number): GrpcStatus | undefined {
    return requestBytes > this.#options.maxRequestBytes ? statusNamed('RequestTooLarge') : undefined;
  }

  /** Undefined if there is space for the growth by the command; else a promise that rejects: see QuotaGuard.admit. */
  admit(command: Command, requestBytes: number): Promise<never> | undefined {
    const { quota } = this.#options;
    if (command.kind === 'leaseGrant') return quota.admit(leaseOverheadBytes + command.label.length);
    const grows = command.kind === 'put' || (command.kind === 'txn' && mayPut(command.txn));
    return grows ? quota.admit(requestBytes) : undefined;
  }

  /**
   * Why a leader may not append the command yet: a server of an earlier version, which stops at it. Once the state has
   * what it brings, such a server cannot read the log anyway.
   */
  versionRefusal(command: Command): GrpcStatus | undefined {
    const { canAllApply, state } = this.#options;
    switch (command.kind) {
      case 'auth':
        return state().auth.revision > 1 || canAllApply(authKind) ? undefined : statusNamed('NotCapable');
      case 'registerMember': {
        const isKnown = command.peerUrls === undefined || command.peerUrls.length === 0;
        const isUsed = state().members.some(({ peerUrls }) => peerUrls !== undefined);
        return isKnown || isUsed || canAllApply(peerUrlsKind) ? undefined : statusNamed('NotCapable');
      }
      default:
        return undefined;
    }
  }

  #authRefusal({ change }: Extract<Command, { kind: 'auth' }>): GrpcStatus | undefined {
    const names = ['user' in change ? change.user : '', 'role' in change ? change.role : ''];
    const isTooLong = names.some((name) => Buffer.byteLength(name) > maxNameBytes);
    return isTooLong ? statusNamed('RequestTooLarge') : undefined;
  }

  #memberRefusal(command: Extract<Command, { kind: 'registerMember' }>): GrpcStatus | undefined {
    const { id, name, clientUrls, peerUrls = [] } = command;
    const { members } = this.#options.state();
    if (!areMemberUrls(clientUrls) || !areMemberUrls(peerUrls)) return statusNamed('MemberBadUrls');
    if (id === 0n || name === '' || name.length > maxMemberNameChars) {
      return invalid(`a member needs an id that is not 0, and a name of 1 to ${maxMemberNameChars} characters`);
    }
    const isNew = !members.some((member) => member.id === id);
    return isNew && members.length >= maxMembers ? statusNamed('TooManyRequests') : undefined;
  }
}

/** What the requester of a command adds to its payload, at most. */
function requesterBytes({ by }: Command): number {
  return by === undefined ? 0 : requesterOverheadBytes + Buffer.byteLength(by.user);
}

function isGrant({ id, ttlMs }: Extract<Command, { kind: 'leaseGrant' }>): boolean {
  return id !== 0n && ttlMs >= 1;
}

function invalid(message: string): GrpcStatus {
  return new GrpcStatus(GrpcCode.invalidArgument, message);
}

function statusOrNone(refused: CoreError | undefined): GrpcStatus | undefined {
  return refused === undefined ? undefined : statusOfCoreError(refused);
}
