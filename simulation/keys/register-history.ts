import type { KeyValue } from '@tenure/core';
import { keyModel, operationsByKey } from '../../tests/histories/key-model.ts';
import type { KeyVersion, KvInput, KvOutput } from '../../tests/histories/kv-operation.ts';
import { checkLinearizable } from '../../tests/histories/linearizability.ts';
import type { Outcome } from '../../tests/histories/operation.ts';
import type { KeyReply } from './key-reply.ts';
import type { KeyRequest } from './key-request.ts';

/** Keys that are never attached to a lease and are only read, put, deleted and swapped, one by one or several puts. */
export const registerKeys: readonly string[] = ['p/0', 'p/1', 'p/2'];

/** The search is exponential at worst. A history that takes more steps is judged by the check of revisions alone. */
const maxSteps = 20_000;

/** A call on the registers, in the terms of the checker. */
export interface RegisterCall {
  readonly client: number;
  readonly input: KvInput;
  readonly calledMs: number;
  returnedMs: number;
  outcome: Outcome<KvOutput>;
}

/**
 * The calls that concern the registers alone, for the check that trusts neither the log nor any revision: whether some
 * order of them explains all answers. Serializable reads and reads of old revisions have no place in it.
 */
export class RegisterHistory {
  readonly #calls: RegisterCall[] = [];

  called(client: number, request: KeyRequest, calledMs: number): RegisterCall | undefined {
    const input = registerInput(request);
    if (input === undefined) return undefined;
    const call: RegisterCall = { client, input, calledMs, returnedMs: Infinity, outcome: { kind: 'unknown' } };
    this.#calls.push(call);
    return call;
  }

  answered(call: RegisterCall | undefined, reply: KeyReply, nowMs: number): void {
    if (call === undefined) return;
    call.returnedMs = nowMs;
    call.outcome = { kind: 'known', output: registerOutput(call.input, reply) };
  }

  failed(call: RegisterCall | undefined, isCertain: boolean): void {
    if (call !== undefined && isCertain) call.outcome = { kind: 'failed' };
  }

  check(): string[] {
    const problems: string[] = [];
    for (const [key, operations] of operationsByKey(this.#calls)) {
      // A read without an answer explains nothing, and each would double the search.
      const judged = operations.filter(({ input, outcome }) => input.kind !== 'get' || outcome.kind === 'known');
      const verdict = checkLinearizable(keyModel, judged, maxSteps);
      if (verdict.kind === 'violation') problems.push(`${key} is not linearizable: ${verdict.explanation}`);
    }
    return problems;
  }
}

function isRegister(key: string): boolean {
  return registerKeys.includes(key);
}

function registerInput(request: KeyRequest): KvInput | undefined {
  if (request.kind === 'range') {
    const { key, rangeEnd, revision, serializable, keysOnly, countOnly, minModRevision } = request.range;
    const isPlain = revision === 0 && !serializable && !keysOnly && !countOnly && minModRevision === 0;
    return isPlain && rangeEnd === '' && isRegister(key) ? { kind: 'get', keys: [key] } : undefined;
  }
  if (request.kind === 'put') {
    const { key, value } = request.put;
    return isRegister(key) ? { kind: 'put', writes: [[key, value]] } : undefined;
  }
  if (request.kind === 'deleteRange') {
    const { key } = request.deleteRange;
    return isRegister(key) ? { kind: 'delete', key } : undefined;
  }
  return request.kind === 'txn' ? txnInput(request.txn) : undefined;
}

/** A swap, whose second comparison has the expected value, or several puts. */
function txnInput({ compare, success }: Extract<KeyRequest, { kind: 'txn' }>['txn']): KvInput | undefined {
  const puts = success.flatMap((op) => (op.kind === 'put' ? [op.put] : []));
  const first = puts[0];
  if (first === undefined || !puts.every(({ key }) => isRegister(key))) return undefined;
  const condition = compare[1];
  if (condition === undefined) return { kind: 'put', writes: puts.map(({ key, value }) => [key, value]) };
  const expected = condition.target === 0 ? undefined : condition.value;
  return { kind: 'swap', key: first.key, expected, value: first.value };
}

function registerOutput(input: KvInput, { revision, result }: KeyReply): KvOutput {
  const seen = new Map<string, KeyVersion | null>();
  if (result.kind === 'range' && input.kind === 'get') {
    for (const key of input.keys) seen.set(key, result.range.kvs.find((kv) => kv.key === key) ?? null);
    return { revision, changed: false, seen };
  }
  if (result.kind === 'deleteRange' && input.kind === 'delete') {
    // Without the request's prevKv the reply has none, which is no statement.
    note(seen, input.key, result.deleteRange.prevKvs[0]);
    return { revision, changed: result.deleteRange.deleted > 0, seen };
  }
  if (result.kind === 'put' && input.kind === 'put') note(seen, input.writes[0]![0], result.put.prevKv);
  if (result.kind !== 'txn') return { revision, changed: true, seen };
  const read = result.txn.responses[0];
  if (input.kind === 'swap' && !result.txn.succeeded && read?.kind === 'range') {
    seen.set(input.key, read.range.kvs[0] ?? null);
  }
  return { revision, changed: result.txn.succeeded, seen };
}

function note(seen: Map<string, KeyVersion | null>, key: string, kv: KeyValue | undefined): void {
  if (kv !== undefined) seen.set(key, kv);
}
