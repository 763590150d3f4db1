import type { LeaseOperation } from './lease-operation.ts';
import { describeOperation } from './operation.ts';

/**
 * The allowed difference between the times of two processes on one machine: the server counts in whole milliseconds.
 */
const toleranceMs = 2;

type Known = LeaseOperation & { readonly outcome: { readonly kind: 'known' } };

/**
 * What no lease service may report, through any of its servers:
 *
 * - that a lease exists, in a call that began after another call reported that it is gone or was revoked;
 * - that a lease is gone, before its TTL has passed since the sending of its grant or of an acknowledged renewal,
 * unless a client had sent a revoke by then;
 * - to two callers of revoke, that each of them revoked it.
 */
export function checkLeases(operations: readonly LeaseOperation[]): string[] {
  const byLease = new Map<bigint, LeaseOperation[]>();
  for (const operation of operations) {
    const list = byLease.get(operation.input.id);
    if (list === undefined) byLease.set(operation.input.id, [operation]);
    else list.push(operation);
  }
  return [...byLease.values()].flatMap((ofOne) => [...resurrections(ofOne), ...earlyEnds(ofOne), ...twoRevokes(ofOne)]);
}

/** Whether the reply shows that the lease does not exist from then on. */
function tellsEnd({ input, outcome }: Known): boolean {
  if (input.kind === 'grant') return false;
  return !outcome.output.alive || input.kind === 'revoke';
}

function resurrections(operations: readonly LeaseOperation[]): string[] {
  const known = operations.filter(isKnown);
  const ends = known.filter(tellsEnd);
  const first = ends.toSorted((a, b) => a.returnedMs - b.returnedMs)[0];
  if (first === undefined) return [];
  return known
    .filter(({ outcome, calledMs }) => outcome.output.alive && calledMs > first.returnedMs)
    .map((operation) => `${describeOperation(operation)}: it had ended before, ${describeOperation(first)}`);
}

function earlyEnds(operations: readonly LeaseOperation[]): string[] {
  const known = operations.filter(isKnown);
  const ttlMs = operations.map(({ input }) => (input.kind === 'grant' ? input.ttlMs : 0)).find((ms) => ms > 0);
  if (ttlMs === undefined) return [];
  const kept = known.filter(({ input, outcome }) => isPromise(input.kind) && outcome.output.alive);
  const last = kept.toSorted((a, b) => b.calledMs - a.calledMs)[0];
  const revokedFromMs = Math.min(
    ...operations
      .filter(({ input, outcome }) => input.kind === 'revoke' && (outcome.kind === 'unknown' || isAlive(outcome)))
      .map(({ calledMs }) => calledMs),
  );
  if (last === undefined) return [];
  return known
    .filter(({ outcome }) => !outcome.output.alive)
    .filter(({ returnedMs }) => returnedMs < revokedFromMs && returnedMs < last.calledMs + ttlMs - toleranceMs)
    .map((operation) => `${describeOperation(operation)}: too early, ${describeOperation(last)}`);
}

/** Whether an acknowledgement of the call promises that the lease lives for its TTL from then on. */
function isPromise(kind: LeaseOperation['input']['kind']): boolean {
  return kind === 'grant' || kind === 'renew';
}

function twoRevokes(operations: readonly LeaseOperation[]): string[] {
  const done = operations
    .filter(isKnown)
    .filter(({ input, outcome }) => input.kind === 'revoke' && outcome.output.alive);
  return done.slice(1).map((second) => `${describeOperation(second)}: so was ${describeOperation(done[0] as Known)}`);
}

function isAlive(outcome: LeaseOperation['outcome']): boolean {
  return outcome.kind === 'known' && outcome.output.alive;
}

function isKnown(operation: LeaseOperation): operation is Known {
  return operation.outcome.kind === 'known';
}
