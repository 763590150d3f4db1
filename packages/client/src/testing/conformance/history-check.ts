import { holders } from '../../backend/queue-position.ts';
import type { Entry } from '../../backend/lease-backend.ts';
import type { Operation, History, ClaimRecord, ListRead } from './history.ts';

/** What in a history no store that keeps the contract can have answered; empty when there is nothing. */
export function checkHistory(history: History): readonly string[] {
  const reads = history.reads.toSorted((one, other) => one.sentMs - other.sentMs);
  const names = new Set(reads.map(({ name }) => name));
  return [...names].flatMap((name) => {
    const own = reads.filter((read) => read.name === name);
    const records = history.records.filter(({ claim }) => claim.name === name);
    return [
      ...own.flatMap(checkRead),
      ...checkSequences(records),
      ...checkPairs(own),
      ...records.flatMap((record) => [...checkPresence(record, own), ...checkEnd(record, own)]),
    ];
  });
}

/** One read by itself: in the order of sequence numbers, nothing twice, and never two that exclude each other. */
function checkRead({ entries }: ListRead): string[] {
  const found: string[] = [];
  const words = entries.map(wordsOf).join(', ');
  for (const [at, { sequence }] of entries.entries()) {
    if (at > 0 && sequence <= (entries[at - 1]?.sequence ?? 0n))
      found.push(`not in the order of sequence numbers: ${words}`);
  }
  if (new Set(entries.map(({ id }) => id)).size < entries.length) found.push(`one claim was entered twice: ${words}`);
  const holding = holders(entries).filter(({ mode }) => mode === 'exclusive');
  if (holding.length > 1) found.push(`two hold: ${words}`);
  return found;
}

/** One that was entered after another had been has the greater sequence number, and no two have the same. */
function checkSequences(records: readonly ClaimRecord[]): string[] {
  const entered = records.flatMap((record) =>
    record.sequence === undefined ? [] : [{ ...record, sequence: record.sequence }],
  );
  return entered.flatMap((one) =>
    entered
      .filter((other) => other !== one && one.answeredMs < other.sentMs && other.sequence <= one.sequence)
      .map((other) => `sequence number ${other.sequence} was given after ${one.sequence}`),
  );
}

/** Of two consecutive reads: entries that only the later one shows have greater numbers than all of the earlier one. */
function checkPairs(reads: readonly ListRead[]): string[] {
  return reads.flatMap((earlier, at) => {
    const shown = new Set(earlier.entries.map(({ sequence }) => sequence));
    const last = earlier.entries.at(-1)?.sequence ?? 0n;
    return reads
      .slice(at + 1)
      .filter((later) => later.sentMs > earlier.answeredMs)
      .flatMap((later) => later.entries.filter(({ sequence }) => sequence < last && !shown.has(sequence)))
      .map((entry) => `${wordsOf(entry)} appeared after sequence number ${last} had been seen without it`);
  });
}

/** While it surely lives every look shows it, with its data, and every deed to it is done. */
function checkPresence(record: ClaimRecord, reads: readonly ListRead[]): string[] {
  const { sequence, claim } = record;
  if (sequence === undefined) {
    const isRefused = record.answeredMs < Infinity;
    return isRefused && reads.some((read) => shows(read, record)) ? [`${claim.id} was not entered and is shown`] : [];
  }
  const leftMs = Math.min(...record.operations.filter(({ kind }) => kind === 'leave').map(({ sentMs }) => sentMs));
  const found: string[] = [];
  for (const read of reads.filter(({ sentMs }) => sentMs >= record.answeredMs)) {
    const entry = read.entries.find(({ id }) => id === claim.id);
    if (entry !== undefined && entry.sequence !== sequence)
      found.push(`${claim.id} has another sequence number than enter returned`);
    const isSure = read.answeredMs < Math.min(leftMs, sureUntilMs(record, read.sentMs));
    if (isSure && entry === undefined)
      found.push(`${claim.id} with sequence number ${sequence} lives and is not shown`);
    if (entry !== undefined && !dataPossible(record, read).has(entry.data)) {
      found.push(`${claim.id} is shown with the data ${JSON.stringify(entry.data)}`);
    }
  }
  for (const operation of record.operations.filter(({ sentMs }) => sentMs >= record.answeredMs)) {
    const isFirstToLeave = operation.kind !== 'leave' || isOnlyLeaving(record, operation);
    const endMs = operation.kind === 'leave' ? Infinity : leftMs;
    const isSure = operation.answeredMs < Math.min(endMs, sureUntilMs(record, operation.sentMs)) && isFirstToLeave;
    if (isSure && operation.isDone === false) found.push(`${operation.kind} of ${claim.id} was refused while it lived`);
  }
  return found;
}

/** Once one look or answer told that it is gone, nothing shows it and nothing is done to it any more. */
function checkEnd(record: ClaimRecord, reads: readonly ListRead[]): string[] {
  const { claim } = record;
  const knownMs = Math.min(record.sequence === undefined ? Infinity : record.answeredMs, firstShownMs(record, reads));
  const goneMs = Math.min(
    ...reads.filter((read) => read.sentMs > knownMs && !shows(read, record)).map(({ answeredMs }) => answeredMs),
    ...record.operations
      .filter((operation) => operation.sentMs > knownMs && reportsRemoval(operation))
      .map(({ answeredMs }) => answeredMs),
  );
  const revived = reads.filter((read) => read.sentMs > goneMs && shows(read, record));
  const done = record.operations.filter(({ sentMs, isDone }) => sentMs > goneMs && isDone === true);
  return [
    ...revived.map(() => `${claim.id} was gone and is shown again`),
    ...done.map(({ kind }) => `${claim.id} was gone and ${kind} was done to it`),
  ];
}

function reportsRemoval({ kind, isDone }: Operation): boolean {
  return isDone === false || (kind === 'leave' && isDone === true);
}

function firstShownMs(record: ClaimRecord, reads: readonly ListRead[]): number {
  return Math.min(...reads.filter((read) => shows(read, record)).map(({ answeredMs }) => answeredMs));
}

function shows({ entries }: ListRead, { claim }: ClaimRecord): boolean {
  return entries.some(({ id }) => id === claim.id);
}

function isOnlyLeaving(record: ClaimRecord, operation: Operation): boolean {
  return record.operations.every(
    (other) => other === operation || other.kind !== 'leave' || other.sentMs > operation.answeredMs,
  );
}

/**
 * Until when the entry lives at least, for a call at `atMs`. A renewal in flight at that time may have come first and
 * shortened its life, so the shortest of all that may be the last counts.
 */
function sureUntilMs(record: ClaimRecord, atMs: number): number {
  const renewals = record.operations.filter(({ kind, isDone }) => kind === 'renew' && isDone !== false);
  const lastDoneMs = Math.max(
    record.sentMs,
    ...renewals.filter(({ answeredMs }) => answeredMs <= atMs).map(({ sentMs }) => sentMs),
  );
  const given = [{ sentMs: record.sentMs, answeredMs: record.answeredMs, ttlMs: record.claim.ttlMs }, ...renewals];
  // One that was answered before the last one was sent cannot be the last.
  const last = given.filter(({ answeredMs }) => answeredMs >= lastDoneMs);
  return Math.min(...last.map(({ sentMs, ttlMs }) => sentMs + ttlMs));
}

function dataPossible(record: ClaimRecord, read: ListRead): ReadonlySet<string> {
  const updates = record.operations.filter(({ kind, isDone, sentMs }) => {
    return kind === 'update' && isDone !== false && sentMs < read.answeredMs;
  });
  const beforeMs = Math.max(
    -Infinity,
    ...updates.filter(({ answeredMs }) => answeredMs < read.sentMs).map(({ sentMs }) => sentMs),
  );
  const possible = updates.filter(({ answeredMs }) => answeredMs >= beforeMs).map(({ data }) => data);
  return new Set(beforeMs === -Infinity ? [record.claim.data, ...possible] : possible);
}

function wordsOf({ id, sequence, mode }: Entry): string {
  return `${id} (${mode}, sequence number ${sequence})`;
}
