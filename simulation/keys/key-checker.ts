import type { LoggedEntry } from '../../packages/server/src/engines/log-engine.ts';
import { errorCatalogue } from '@tenure/protocol';
import type { CallError, ClientConnection } from '../world/client-connection.ts';
import { KeyOracle } from './key-oracle.ts';
import { type KeyReply, textOfResult } from './key-reply.ts';
import { type KeyRequest, isReadOnly, tagOfRequest } from './key-request.ts';
import { refusalKind } from './refusal-kind.ts';
import { RegisterHistory, type RegisterCall } from './register-history.ts';

/** A request that was sent and has no outcome yet. */
export interface SentRequest {
  readonly client: number;
  readonly request: KeyRequest;
  readonly tag: string | undefined;
  readonly sentMs: number;
  readonly connection: ClientConnection;
  /** The newest revision that any client had been told of, and the newest acknowledged compaction. */
  readonly floor: number;
  readonly compactedFloor: number;
  /** The newest revision that this connection had told of. */
  readonly connectionFloor: number;
  readonly register: RegisterCall | undefined;
}

/**
 * Judges the requests of all clients about keys: A1 (acknowledged writes are in the log once, refused ones never), A2
 * (no connection goes back), A4 (reads and writes are linearizable, serializable reads equal the log's state at their
 * revision, and nothing is served that is not durable), A5 (revisions do not go back in real time), L5 (the keys of a
 * lease). `nowMs` is the true time.
 */
export class KeyChecker {
  readonly oracle: KeyOracle;
  readonly violations: string[] = [];
  readonly #nowMs: () => number;
  readonly #history = new RegisterHistory();
  /** Tags of writes that a server has refused for good, with its words. */
  readonly #refused = new Map<string, string>();
  readonly #done = new Set<string>();
  readonly #toldBy = new WeakMap<ClientConnection, number>();
  #told = 0;
  #compactedTold = -1;

  constructor(nowMs: () => number, oracle: KeyOracle = new KeyOracle()) {
    this.#nowMs = nowMs;
    this.oracle = oracle;
  }

  /** To be called when an entry becomes durable, before any server is told. */
  committed(entry: LoggedEntry): void {
    for (const tag of this.oracle.committed(entry)) {
      const refusal = this.#refused.get(tag);
      if (this.#done.has(tag)) this.#violated('A1', `${tag} took effect twice`);
      else if (refusal !== undefined) this.#violated('A1', `${tag} took effect after it had been refused: ${refusal}`);
      this.#done.add(tag);
    }
  }

  /** The newest revision that any client has been told of. */
  get toldRevision(): number {
    return this.#told;
  }

  sent(client: number, request: KeyRequest, connection: ClientConnection): SentRequest {
    const sentMs = this.#nowMs();
    return {
      client,
      request,
      connection,
      sentMs,
      tag: tagOfRequest(request),
      floor: this.#told,
      compactedFloor: this.#compactedTold,
      connectionFloor: this.#toldBy.get(connection) ?? 0,
      register: this.#history.called(client, request, sentMs),
    };
  }

  answered(sent: SentRequest, reply: KeyReply): void {
    const { request } = sent;
    const { revision } = reply;
    const isSerializable = request.kind === 'range' && request.range.serializable;
    this.#history.answered(sent.register, reply, this.#nowMs());
    if (revision > this.oracle.currentRevision) {
      this.#violated('A4', `${describe(sent)}: revision ${revision} is not durable`);
      return;
    }
    const floor = isSerializable ? sent.connectionFloor : sent.floor;
    if (revision < floor) {
      this.#violated(isSerializable ? 'A2' : 'A5', `${describe(sent)}: revision ${revision} after ${floor}`);
    }
    if (sent.tag !== undefined) this.#checkWrite(sent, sent.tag, reply);
    else this.#checkRead(sent, reply);
    this.#told = Math.max(this.#told, revision);
    if (request.kind === 'compact') this.#compactedTold = Math.max(this.#compactedTold, request.revision);
    // The leader answers this one, and a follower passes the answer on without waiting for the revision in its header.
    if (request.kind === 'leaseKeys') return;
    this.#toldBy.set(sent.connection, Math.max(this.#toldBy.get(sent.connection) ?? 0, revision));
  }

  failed(sent: SentRequest, error: CallError): void {
    const kind = refusalKind(error);
    this.#history.failed(sent.register, kind === 'notDone');
    const words = `${error.code} ${error.message}`;
    if (kind === 'defect') this.#violated('A1', `${describe(sent)}: answered with ${words}`);
    if (kind !== 'notDone') return;
    if (sent.tag === undefined) {
      if (sent.request.kind === 'range') this.#checkRefusedRange(sent, sent.request.range.revision, error);
      return;
    }
    this.#refused.set(sent.tag, words);
    const logged = this.oracle.requestTagged(sent.tag)?.response;
    if (logged === undefined) return;
    const expected = logged.kind === 'error' ? errorCatalogue[logged.code].text : `done at ${logged.revision}`;
    if (expected !== error.message) {
      this.#violated('A1', `${describe(sent)}: refused with ${words}, but by the log it is ${expected}`);
    }
  }

  /** At the end: no further outcome will come. */
  finish(): void {
    for (const problem of this.#history.check()) this.#violated('A4', problem);
  }

  #checkWrite(sent: SentRequest, tag: string, { revision, result }: KeyReply): void {
    const logged = this.oracle.requestTagged(tag);
    if (logged === undefined) {
      this.#violated('A1', `${describe(sent)}: acknowledged at ${revision} and not in the log`);
      return;
    }
    if (logged.response.kind === 'error') {
      this.#violated('A1', `${describe(sent)}: acknowledged, but by the log it is ${logged.response.code}`);
      return;
    }
    // The reply to a grant names the newest revision of the server, as in etcd.
    const isAt = sent.request.kind === 'leaseGrant' ? revision >= logged.revision : revision === logged.revision;
    if (!isAt) {
      this.#violated('A4', `${describe(sent)}: at revision ${revision}, but in the log at ${logged.revision}`);
      return;
    }
    this.#compare(sent, result, textOfResult(logged.response));
  }

  #checkRead(sent: SentRequest, { revision, result }: KeyReply): void {
    const { request } = sent;
    const { oracle } = this;
    if (request.kind === 'compact' && request.revision > oracle.compactRevision) {
      this.#violated('A1', `${describe(sent)}: acknowledged and not in the log`);
    } else if (request.kind === 'txn') {
      const expected = { kind: 'txn', txn: oracle.readTxnAt(revision, request.txn) } as const;
      this.#compare(sent, result, textOfResult(expected));
    } else if (request.kind === 'leaseKeys' && result.kind === 'leaseKeys' && result.exists) {
      const expected = oracle.keysOfLeaseAt(revision, request.id).join(', ');
      const given = result.keys.join(', ');
      if (given !== expected) {
        this.#violated('L5', `${describe(sent)}: at revision ${revision} it has ${expected || 'no key'}, not ${given}`);
      }
    } else if (request.kind === 'range') {
      const { range } = request;
      const at = range.revision > 0 ? range.revision : revision;
      if (at > revision) {
        this.#violated('A4', `${describe(sent)}: a future revision was read at ${revision}`);
        return;
      }
      if (!range.serializable && range.revision > 0 && at < sent.compactedFloor) {
        this.#violated('A4', `${describe(sent)}: read though compacted at ${sent.compactedFloor}`);
      }
      this.#compare(sent, result, textOfResult({ kind: 'range', range: oracle.rangeAt(at, range) }));
    }
  }

  #checkRefusedRange(sent: SentRequest, at: number, { message }: CallError): void {
    const { oracle } = this;
    if (message === errorCatalogue.Compacted.text && at >= oracle.compactRevision) {
      this.#violated('A4', `${describe(sent)}: refused as compacted, but the log is compacted at less`);
    }
    const isLinearizable = sent.request.kind === 'range' && !sent.request.range.serializable;
    if (message === errorCatalogue.FutureRevision.text && isLinearizable && at <= sent.floor) {
      this.#violated('A5', `${describe(sent)}: refused as a future revision after ${sent.floor}`);
    }
  }

  #compare(sent: SentRequest, given: KeyReply['result'], expected: string): void {
    const text = textOfResult(given);
    if (text !== expected) this.#violated('A4', `${describe(sent)}: answered ${text}, by the log ${expected}`);
  }

  #violated(rule: string, what: string): void {
    this.violations.push(`${rule} at ${Math.round(this.#nowMs())} ms: ${what}`);
  }
}

function describe({ client, request, tag, sentMs, connection }: SentRequest): string {
  const what = isReadOnly(request) ? 'txn of reads' : request.kind;
  const key = request.kind === 'range' ? ` of ${request.range.key} at ${request.range.revision}` : '';
  return `${what}${key} ${tag ?? ''} of client ${client} to ${connection.address}, sent at ${Math.round(sentMs)} ms`;
}
