import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { Member, StateMachine } from '@tenure/core';
import { peerpb } from '@tenure/protocol';
import { formatWithoutLimits, magic } from '../../packages/core/src/snapshot/snapshot-format.ts';
import type { LoggedEntry, Position, StoredSnapshot } from '../../packages/server/src/engines/log-engine.ts';
import { encodeCommand, txnLimitsKind } from '../../packages/server/src/replica/command-codec.ts';
import { decodeEntry, encodeEntry } from '../../packages/server/src/replica/entry-codec.ts';
import type { ServerNetwork } from '../../packages/server/src/server-options.ts';
import { LogConnection } from '../world/log-connection.ts';

/**
 * A version of Tenure from before the newest kind of command. It is the present code without what came with that kind:
 * it says nothing of it to the leader, never appends it, and stops at an entry or a snapshot that has it.
 */
export interface OlderVersion {
  /** The newest kind of command that it knows, as it says to the leader; 0 for a version that does not say. */
  readonly newestCommand: number;
}

/** The newest kind of command of an older version. */
export const newestOlderKind = txnLimitsKind - 1;

/** A kind of command, or a format of a snapshot, becomes by this one that no version knows. */
const beyondKnown = 1_000;
/** Where the preamble of a snapshot has its format: 32 bits, little-endian. */
const formatOffset = magic.length;

/** Whether this entry holds a command that came after the older version. */
export function isNewer(bytes: Uint8Array): boolean {
  return decodeEntry(bytes).commands.some(({ kind }) => kind > newestOlderKind);
}

/** The first entry of a log as the older version begins it, with the members that have registered since. */
export function olderBeginning(members: readonly Member[]): Uint8Array {
  const created = encodeCommand({ kind: 'createCluster', clusterId: 7n, secret: 'of an older version' });
  const registered = members.map((member) => encodeCommand({ kind: 'registerMember', ...member }));
  return encodeEntry({ epoch: 0, timeMs: 0 }, [created, ...registered]);
}

/** The log as a process of the older version reads it: what came later is unknown to the production code. */
export class OlderLogConnection extends LogConnection {
  override async *follow(from: Position, signal: AbortSignal): AsyncGenerator<readonly LoggedEntry[]> {
    for await (const entries of super.follow(from, signal)) yield entries.map(withoutNewer);
  }

  override async loadSnapshot(): Promise<StoredSnapshot | undefined> {
    const snapshot = await super.loadSnapshot();
    return snapshot && { position: snapshot.position, chunks: chunksWithoutNewer(snapshot.chunks) };
  }
}

function withoutNewer(entry: LoggedEntry): LoggedEntry {
  if (!isNewer(entry.bytes)) return entry;
  const { headers, commands } = decodeEntry(entry.bytes);
  const unknown = commands.map((command) => {
    return command.kind > newestOlderKind ? { ...command, kind: command.kind + beyondKnown } : command;
  });
  return { ...entry, bytes: encodeEntry(headers, unknown) };
}

async function* chunksWithoutNewer(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let isFirst = true;
  for await (const chunk of chunks) {
    const copy = Buffer.from(chunk);
    const format = isFirst ? copy.readUInt32LE(formatOffset) : formatWithoutLimits;
    if (format > formatWithoutLimits) copy.writeUInt32LE(format + beyondKnown, formatOffset);
    isFirst = false;
    yield copy;
  }
}

/** The network as a process of the older version uses it: its greeting is that of its version. */
export function olderNetwork(network: ServerNetwork, { newestCommand }: OlderVersion): ServerNetwork {
  const { openLeaderStream } = network;
  if (openLeaderStream === undefined) return network;
  return {
    ...network,
    openLeaderStream: (url, listener) => {
      const stream = openLeaderStream(url, listener);
      let isGreeting = true;
      return {
        write: (message) => {
          const sent = isGreeting ? olderGreeting(message, newestCommand) : message;
          isGreeting = false;
          return stream.write(sent);
        },
        cancel: (code, details) => stream.cancel(code, details),
      };
    },
  };
}

function olderGreeting(message: Uint8Array, newestCommand: number): Uint8Array {
  const { hello, ...rest } = fromBinary(peerpb.ToLeaderSchema, message);
  if (hello === undefined) throw new Error('the first message of a stream between servers is no greeting');
  return toBinary(
    peerpb.ToLeaderSchema,
    create(peerpb.ToLeaderSchema, { ...rest, hello: { ...hello, newestCommand } }),
  );
}

/** A server of the older version sets no limits of transactions, whether it leads others or is alone. */
export function withoutSettingLimits(state: StateMachine): void {
  Object.defineProperty(state, 'hasTxnLimits', { value: true });
}
