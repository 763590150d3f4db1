import type { DescMessage, MessageInitShape } from '@bufbuild/protobuf';
import type { Command } from '@tenure/core';
import { tenureLog } from '@tenure/protocol';
import {
  decodeDeleteRangeRequest,
  decodeLoggedGrant,
  decodeMessage,
  decodePutRequest,
  decodeRequestedCommand,
  decodeTxnRequest,
  encodeDeleteRangeRequest,
  encodeFramed,
  encodeLoggedGrant,
  encodePutRequest,
  encodeRequestedCommand,
  encodeTxnRequest,
  frameHeadroomBytes,
} from '@tenure/codec';
import { authChangeOf, authMessageOf } from './auth-codec.ts';
import type { EncodedCommand } from './entry-codec.ts';

/** Kinds of commands in the log. A number is permanent; a new kind stops a server that does not know it. */
const kinds = {
  put: 1,
  deleteRange: 2,
  txn: 3,
  compact: 4,
  leaseGrant: 5,
  leaseRevoke: 6,
  expireLeases: 7,
  checkpointLeases: 8,
  renewLeases: 9,
  claim: 10,
  heartbeat: 11,
  createCluster: 12,
  registerMember: 13,
  alarm: 14,
  resign: 15,
  removeMember: 16,
  setTxnLimits: 17,
  auth: 18,
} as const satisfies Record<Command['kind'], number>;

/** A command with its requester. It came with the same version as the auth data, without which it is not written. */
const requestedKind = 19;

/** The registration of a member with peer URLs; one without them has the kind that earlier versions know. */
export const peerUrlsKind = 20;

/** Kinds are numbered in the order in which versions of Tenure brought them. */
export const newestCommandKind = Math.max(peerUrlsKind, ...Object.values(kinds));

/** From which kind on a server knows the limits of transactions. */
export const txnLimitsKind = kinds.setTxnLimits;

/** From which kind on a server checks permissions. */
export const authKind = kinds.auth;

const noBytes = Buffer.alloc(0);

/**
 * A command as the log holds it. `raw` is the request as the client sent it, for the kinds whose payload is etcd's
 * own message: the bytes go to the log as they came in.
 */
export function encodeCommand(command: Command, raw?: Buffer): EncodedCommand {
  const kind = kindOf(command);
  const payload = raw ?? encodePayload(command);
  if (command.by === undefined) return { kind, payload };
  const { user, authRevision } = command.by;
  return { kind: requestedKind, payload: encodeRequestedCommand({ user, authRevision, kind, payload }) };
}

function kindOf(command: Command): number {
  const hasPeerUrls = command.kind === 'registerMember' && (command.peerUrls?.length ?? 0) > 0;
  return hasPeerUrls ? peerUrlsKind : kinds[command.kind];
}

function encodePayload(command: Command): Buffer {
  switch (command.kind) {
    case 'put':
      return withoutHeadroom(encodePutRequest(command.put));
    case 'deleteRange':
      return withoutHeadroom(encodeDeleteRangeRequest(command.deleteRange));
    case 'txn':
      return withoutHeadroom(encodeTxnRequest(command.txn));
    case 'compact':
      return bytesOf(tenureLog.CompactSchema, { revision: BigInt(command.revision) });
    case 'leaseGrant':
      return encodeLoggedGrant(command);
    case 'leaseRevoke':
      return bytesOf(tenureLog.LeaseRevokeSchema, { id: command.id });
    case 'expireLeases':
      return bytesOf(tenureLog.ExpireLeasesSchema, {
        leases: command.leases.map(({ id, renewIndex }) => ({ id, renewIndex: BigInt(renewIndex) })),
      });
    case 'checkpointLeases':
      return bytesOf(tenureLog.CheckpointLeasesSchema, {
        leases: command.leases.map(({ id, renewIndex, deadlineMs }) => {
          return { id, renewIndex: BigInt(renewIndex), deadlineMs: BigInt(deadlineMs) };
        }),
      });
    case 'renewLeases':
      return bytesOf(tenureLog.RenewLeasesSchema, { ids: [...command.ids] });
    case 'claim': {
      const { epoch, leader, leaderLeaseMs } = command;
      return bytesOf(tenureLog.ClaimSchema, { epoch: BigInt(epoch), leader, leaderLeaseMs: BigInt(leaderLeaseMs) });
    }
    case 'heartbeat':
      return noBytes;
    case 'createCluster':
      return bytesOf(tenureLog.CreateClusterSchema, { clusterId: command.clusterId, secret: command.secret });
    case 'resign':
      return bytesOf(tenureLog.ResignSchema, { target: command.target });
    case 'removeMember':
      return bytesOf(tenureLog.RemoveMemberSchema, { id: command.id });
    case 'registerMember': {
      const { id, name, clientUrls, peerUrls = [] } = command;
      const urls = { clientUrls: [...clientUrls], peerUrls: [...peerUrls] };
      return bytesOf(tenureLog.RegisterMemberSchema, { id, name, ...urls });
    }
    case 'setTxnLimits': {
      const { maxRows, maxReplyBytes, maxComparedBytes } = command.limits;
      return bytesOf(tenureLog.SetTxnLimitsSchema, {
        maxRows: BigInt(maxRows),
        maxReplyBytes: BigInt(maxReplyBytes),
        maxComparedBytes: BigInt(maxComparedBytes),
      });
    }
    case 'alarm':
      return bytesOf(tenureLog.AlarmSchema, {
        action: command.action === 'activate' ? tenureLog.Alarm_Action.ACTIVATE : tenureLog.Alarm_Action.DEACTIVATE,
        memberId: command.memberId,
        alarm: command.alarm === 'nospace' ? tenureLog.Alarm_Kind.NOSPACE : tenureLog.Alarm_Kind.CORRUPT,
      });
    case 'auth':
      return bytesOf(tenureLog.AuthSchema, { change: authMessageOf(command.change) });
  }
}

type Decode = (payload: Buffer) => Command;

const decoders: Readonly<Record<number, Decode>> = {
  [kinds.put]: (payload) => ({ kind: 'put', put: decodePutRequest(payload) }),
  [kinds.deleteRange]: (payload) => ({ kind: 'deleteRange', deleteRange: decodeDeleteRangeRequest(payload) }),
  [kinds.txn]: (payload) => ({ kind: 'txn', txn: decodeTxnRequest(payload) }),
  [kinds.compact]: (payload) => {
    return { kind: 'compact', revision: Number(decodeMessage(tenureLog.CompactSchema, payload).revision) };
  },
  [kinds.leaseGrant]: (payload) => {
    const { id, ttlMs, label } = decodeLoggedGrant(payload);
    return { kind: 'leaseGrant', id, ttlMs, label };
  },
  [kinds.leaseRevoke]: (payload) => {
    return { kind: 'leaseRevoke', id: decodeMessage(tenureLog.LeaseRevokeSchema, payload).id };
  },
  [kinds.expireLeases]: (payload) => {
    const { leases } = decodeMessage(tenureLog.ExpireLeasesSchema, payload);
    return {
      kind: 'expireLeases',
      leases: leases.map(({ id, renewIndex }) => ({ id, renewIndex: Number(renewIndex) })),
    };
  },
  [kinds.checkpointLeases]: (payload) => {
    const { leases } = decodeMessage(tenureLog.CheckpointLeasesSchema, payload);
    return {
      kind: 'checkpointLeases',
      leases: leases.map(({ id, renewIndex, deadlineMs }) => {
        return { id, renewIndex: Number(renewIndex), deadlineMs: Number(deadlineMs) };
      }),
    };
  },
  [kinds.renewLeases]: (payload) => ({
    kind: 'renewLeases',
    ids: decodeMessage(tenureLog.RenewLeasesSchema, payload).ids,
  }),
  [kinds.claim]: (payload) => {
    const { epoch, leader, leaderLeaseMs } = decodeMessage(tenureLog.ClaimSchema, payload);
    return { kind: 'claim', epoch: Number(epoch), leader, leaderLeaseMs: Number(leaderLeaseMs) };
  },
  [kinds.heartbeat]: () => ({ kind: 'heartbeat' }),
  [kinds.createCluster]: (payload) => {
    const { clusterId, secret } = decodeMessage(tenureLog.CreateClusterSchema, payload);
    return { kind: 'createCluster', clusterId, secret };
  },
  [kinds.resign]: (payload) => ({ kind: 'resign', target: decodeMessage(tenureLog.ResignSchema, payload).target }),
  [kinds.removeMember]: (payload) => ({
    kind: 'removeMember',
    id: decodeMessage(tenureLog.RemoveMemberSchema, payload).id,
  }),
  [kinds.registerMember]: (payload) => {
    const { id, name, clientUrls } = decodeMessage(tenureLog.RegisterMemberSchema, payload);
    return { kind: 'registerMember', id, name, clientUrls };
  },
  [peerUrlsKind]: (payload) => {
    const { id, name, clientUrls, peerUrls } = decodeMessage(tenureLog.RegisterMemberSchema, payload);
    return { kind: 'registerMember', id, name, clientUrls, peerUrls };
  },
  [kinds.setTxnLimits]: (payload) => {
    const { maxRows, maxReplyBytes, maxComparedBytes } = decodeMessage(tenureLog.SetTxnLimitsSchema, payload);
    return {
      kind: 'setTxnLimits',
      limits: {
        maxRows: Number(maxRows),
        maxReplyBytes: Number(maxReplyBytes),
        maxComparedBytes: Number(maxComparedBytes),
      },
    };
  },
  [kinds.alarm]: (payload) => {
    const { action, memberId, alarm } = decodeMessage(tenureLog.AlarmSchema, payload);
    return {
      kind: 'alarm',
      action: action === tenureLog.Alarm_Action.ACTIVATE ? 'activate' : 'deactivate',
      memberId,
      alarm: alarm === tenureLog.Alarm_Kind.NOSPACE ? 'nospace' : 'corrupt',
    };
  },
  [kinds.auth]: (payload) => ({ kind: 'auth', change: authChangeOf(decodeMessage(tenureLog.AuthSchema, payload)) }),
};

/**
 * Reads a command of the log. Throws on a kind that this version does not know, before anything of the entry is
 * applied.
 */
export function decodeCommand({ kind, payload }: EncodedCommand): Command {
  if (kind !== requestedKind) return decodeBody(kind, payload);
  const { user, authRevision, ...body } = decodeRequestedCommand(payload);
  return { ...decodeBody(body.kind, body.payload), by: { user, authRevision } };
}

function decodeBody(kind: number, payload: Buffer): Command {
  const decode = decoders[kind];
  if (decode === undefined) {
    throw new Error(
      `the log holds a command of kind ${kind}, which this version of Tenure does not know: upgrade this server`,
    );
  }
  return decode(payload);
}

/** The hand-written encoders leave room for gRPC's prefix, which the log has no use for. */
function withoutHeadroom(framed: Buffer): Buffer {
  return framed.subarray(frameHeadroomBytes);
}

function bytesOf<D extends DescMessage>(schema: D, init: MessageInitShape<D>): Buffer {
  return withoutHeadroom(encodeFramed(schema, init));
}
