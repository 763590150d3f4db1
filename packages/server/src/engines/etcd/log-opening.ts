import { randomBytes } from 'node:crypto';
import { etcdserverpb } from '@tenure/protocol';
import { EtcdError } from 'tenure/etcd';
import { logStart } from '../chain-hash.ts';
import { EngineError } from '../engine-error.ts';
import type { EtcdLogClient } from './etcd-log-client.ts';
import { engineErrorOf } from './engine-error-of.ts';
import { getOp, holdsNothing, keysRead, putOp } from './etcd-requests.ts';
import type { LogKeys } from './log-keys.ts';
import { decodeMark, encodeMark } from './log-mark.ts';
import type { LogMark } from './log-mark.ts';
import { StoredLog } from './stored-log.ts';

/** The permission that the operator has to grant, as a command. */
function grantHelp(keys: LogKeys): string {
  return `etcdctl role grant-permission ROLE readwrite ${keys.prefix}/ --prefix=true`;
}

/**
 * Finds the log, or creates an empty one if the prefix is empty. Rejects with EngineError `unavailable` when etcd
 * cannot be reached within `timeoutMs`, and with `unusable` when the prefix holds other keys, the format is newer, or
 * the user may not read and write here.
 */
export async function openStoredLog(
  client: EtcdLogClient,
  keys: LogKeys,
  { timeoutMs, mustExist }: { readonly timeoutMs: number; readonly mustExist: boolean },
): Promise<StoredLog> {
  try {
    const found = await readHead(client, keys, timeoutMs);
    if (found === undefined && mustExist) {
      throw new EngineError('unusable', `etcd has no log of Tenure under ${keys.prefix}/`);
    }
    await checkWriteAccess(client, keys);
    const { log, ...head } = found ?? (await makeLog(client, keys));
    const stored = new StoredLog(client, keys, log, head);
    await stored.look();
    return stored;
  } catch (error) {
    if (error instanceof EtcdError && error.details === 'etcdserver: permission denied') {
      const message = `the etcd user may not read and write under ${keys.prefix}/: ${grantHelp(keys)}`;
      throw new EngineError('unusable', message, { cause: error });
    }
    const failed = engineErrorOf(`opening the log under ${keys.prefix} in etcd failed`, error, 'unavailable');
    const isSilent = failed instanceof EngineError && failed.code === 'unavailable';
    if (!isSilent) throw failed;
    throw new EngineError('unavailable', `${failed.message}; ${reachHelp(client)}`, { cause: failed });
  }
}

/** The error of a connection broken by TLS says little about the reason. */
function reachHelp({ usesTls }: EtcdLogClient): string {
  const files = usesTls
    ? 'see that --engine-cacert, --engine-cert and --engine-key are what it wants'
    : 'give --engine-cacert if it asks for TLS';
  return `start etcd, give its right address with --engine, or ${files}`;
}

type FoundHead = LogMark & { readonly log: string };

async function readHead(client: EtcdLogClient, keys: LogKeys, timeoutMs: number): Promise<FoundHead | undefined> {
  const { kvs } = await client.read(etcdserverpb.KV.method.range, { key: keys.head }, timeoutMs);
  return kvs[0] && decodeMark('head', keys.head, kvs[0].value);
}

/** Deletes a key that never exists: that creates no revision, but needs write permission. */
async function checkWriteAccess(client: EtcdLogClient, keys: LogKeys): Promise<void> {
  const { key } = keys.everything;
  const rangeEnd = Buffer.concat([key, Buffer.of(0)]);
  await client.read(etcdserverpb.KV.method.deleteRange, { key, rangeEnd });
}

/** Only for an empty prefix. Of several servers that start at once one creates the log, and the others find it. */
async function makeLog(client: EtcdLogClient, keys: LogKeys): Promise<FoundHead> {
  await checkLogsAbove(client, keys);
  const log = randomBytes(16).toString('hex');
  const start: LogMark = { position: logStart, bytesBefore: 0 };
  const answer = await client.read(etcdserverpb.KV.method.txn, {
    compare: [holdsNothing(keys.everything)],
    success: [
      putOp(keys.head, encodeMark('head', log, start)),
      putOp(keys.base, encodeMark('base', log, start)),
      getOp(keys.head),
    ],
    failure: [getOp(keys.head), getOp(keys.head), getOp(keys.head)],
  });
  const head = keysRead(answer, 2)[0];
  if (head !== undefined) return decodeMark('head', keys.head, head.value);
  const message =
    `under ${keys.prefix}/ etcd holds keys that are not of a Tenure log: give the log a prefix of its own, ` +
    `or remove them if nothing needs them: etcdctl del --prefix ${keys.prefix}/`;
  throw new EngineError('unusable', message);
}

/** `/a/b` would be among the keys of a log `/a`. Parent prefixes that this user may not read are skipped. */
async function checkLogsAbove(client: EtcdLogClient, keys: LogKeys): Promise<void> {
  for (const key of keys.headsAbove) {
    const { kvs } = await client.read(etcdserverpb.KV.method.range, { key }).catch((error: unknown) => {
      if (error instanceof EtcdError && error.etcdCode === 'denied') return { kvs: [] };
      throw error;
    });
    if (kvs[0] === undefined || !Buffer.from(kvs[0].value).toString().startsWith('tenure-head ')) continue;
    const message = `${keys.prefix} lies inside the log whose head is ${key.toString()}: choose a prefix beside it`;
    throw new EngineError('unusable', message);
  }
}
