import type { HistoryEvent, HistoryLog } from './history-log.ts';
import type { KeyVersion, KvInput, KvOperation, KvOutput } from './kv-operation.ts';
import { describeOperation } from './operation.ts';

/**
 * Contradictions to strict serializability in a history of which every revision is known; none if it is strictly
 * serializable in the order of revisions. The log gives the order of the writes, and the headers give each call's place
 * in it, so one pass is enough: unlike a search this can check long histories of calls on several keys.
 *
 * - Every revision has one author: a call that reported it, a call with an unknown outcome (at most one revision), or
 * the end of a lease, which deletes all its keys. No failed call is in the log.
 * - The answer to a call agrees with the log at its revision.
 * - A call's revision is no older than any revision reported before the call was made, and no newer than the last write
 * that had been requested when it was answered.
 */
export function checkRevisions(operations: readonly KvOperation[], log: HistoryLog): string[] {
  return [...log.problems, ...new RevisionCheck(operations, log).run()];
}

class RevisionCheck {
  readonly #problems: string[] = [];
  readonly #operations: readonly KvOperation[];
  readonly #log: HistoryLog;
  readonly #authors = new Map<number, KvOperation>();

  constructor(operations: readonly KvOperation[], log: HistoryLog) {
    this.#operations = operations;
    this.#log = log;
  }

  run(): readonly string[] {
    for (const operation of this.#operations) {
      const { outcome } = operation;
      if (outcome.kind === 'known') this.#checkAnswer(operation, outcome.output);
    }
    this.#findAuthors();
    this.#checkRealTime();
    return this.#problems;
  }

  #checkAnswer(operation: KvOperation, output: KvOutput): void {
    const { input } = operation;
    const { revision, changed, seen } = output;
    if (revision > this.#log.head) this.#report(operation, `the log ends at revision ${this.#log.head}`);
    // The answer to a write contains the previous version.
    const basis = changed ? revision - 1 : revision;
    for (const [key, told] of seen) {
      const held = this.#log.versionAt(key, basis);
      if (!sameVersion(told ?? undefined, held)) {
        this.#report(operation, `at revision ${basis} ${key} was ${textOf(held)}`);
      }
    }
    const changes = this.#changes(input, basis);
    if (changes !== changed)
      this.#report(operation, `at revision ${basis} it ${changes ? 'changes' : 'cannot change'} it`);
    if (!changed) return;
    const other = this.#authors.get(revision);
    if (other !== undefined) this.#report(operation, `the same revision as ${describeOperation(other)}`);
    this.#authors.set(revision, operation);
    const wrong = differenceFrom(input, this.#log.eventsAt(revision));
    if (wrong !== undefined) this.#report(operation, wrong);
  }

  /** Whether the call changes the store in its state at that revision. */
  #changes(input: KvInput, revision: number): boolean {
    if (input.kind === 'get') return false;
    if (input.kind === 'put') return true;
    const held = this.#log.versionAt(input.key, revision)?.value;
    return input.kind === 'delete' ? held !== undefined : held === input.expected;
  }

  /** Every unreported revision is the effect of a call with an unknown outcome, or the end of a lease. */
  #findAuthors(): void {
    const unanswered = this.#operations.filter(({ outcome }) => outcome.kind === 'unknown');
    const unknown = unanswered.toSorted((a, b) => a.calledMs - b.calledMs);
    const used = new Set<KvOperation>();
    for (let revision = 2; revision <= this.#log.head; revision += 1) {
      if (this.#authors.has(revision)) continue;
      const events = this.#log.eventsAt(revision);
      const author = unknown.find(
        (operation) =>
          !used.has(operation) &&
          operation.input.kind !== 'get' &&
          this.#changes(operation.input, revision - 1) &&
          differenceFrom(operation.input, events) === undefined,
      );
      if (author !== undefined) {
        used.add(author);
        this.#authors.set(revision, author);
      } else if (!this.#isEndOfLease(revision, events)) {
        const told = events.map(({ key, version }) => `${key} = ${version?.value ?? '(deleted)'}`).join(', ');
        this.#problems.push(`no call can have made revision ${revision}: ${told}`);
      }
    }
  }

  #isEndOfLease(revision: number, events: readonly HistoryEvent[]): boolean {
    const before = events.map(({ key }) => this.#log.versionAt(key, revision - 1)?.lease ?? 0n);
    const lease = before[0] ?? 0n;
    return (
      lease !== 0n &&
      events.every(({ version }) => version === undefined) &&
      before.every((other) => other === lease) &&
      this.#log.keysOf(lease, revision).length === 0
    );
  }

  #checkRealTime(): void {
    // The earliest time of each revision: when the calls that made it and all before it had been made.
    const possibleFromMs: number[] = [-Infinity, -Infinity];
    for (let revision = 2; revision <= this.#log.head; revision += 1) {
      const calledMs = this.#authors.get(revision)?.calledMs ?? -Infinity;
      possibleFromMs.push(Math.max(possibleFromMs[revision - 1] ?? -Infinity, calledMs));
    }
    const known = this.#operations.flatMap((operation) =>
      operation.outcome.kind === 'known' ? [{ operation, output: operation.outcome.output }] : [],
    );
    const byCall = known.toSorted((a, b) => a.operation.calledMs - b.operation.calledMs);
    const byReturn = known.toSorted((a, b) => a.operation.returnedMs - b.operation.returnedMs);
    let ended = 0;
    let newest = known[0];
    for (const { operation, output } of byCall) {
      for (let next = byReturn[ended]; next !== undefined; next = byReturn[ended]) {
        if (next.operation.returnedMs >= operation.calledMs) break;
        if (ended === 0 || next.output.revision > (newest?.output.revision ?? 0)) newest = next;
        ended += 1;
      }
      const { revision, changed } = output;
      const floor = ended === 0 ? 0 : (newest?.output.revision ?? 0) + (changed ? 1 : 0);
      if (revision < floor && newest !== undefined) {
        this.#report(operation, `it began after this had been reported: ${describeOperation(newest.operation)}`);
      }
      if (operation.returnedMs < (possibleFromMs[revision] ?? -Infinity)) {
        this.#report(operation, 'it reports a write that had not been requested by then');
      }
    }
    this.#checkUnknownOrder(byReturn);
  }

  /** A call with an unknown outcome takes effect after its beginning: behind every revision reported by then. */
  #checkUnknownOrder(byReturn: readonly { operation: KvOperation; output: KvOutput }[]): void {
    for (const [revision, author] of this.#authors) {
      if (author.outcome.kind !== 'unknown') continue;
      const later = byReturn.find(
        ({ operation, output }) => operation.returnedMs < author.calledMs && output.revision >= revision,
      );
      if (later !== undefined) {
        this.#report(
          author,
          `it made revision ${revision}, reported before it began: ${describeOperation(later.operation)}`,
        );
      }
    }
  }

  #report(operation: KvOperation, problem: string): void {
    this.#problems.push(`${describeOperation(operation)}: ${problem}`);
  }
}

/** How the events of a revision differ from the effect of the call; undefined if they do not. */
function differenceFrom(input: KvInput, events: readonly HistoryEvent[]): string | undefined {
  const told = events.map(({ key, version }) => `${key}=${version?.value} ${version?.lease ?? 0n}`);
  const expected = effectsOf(input).map(([key, value, lease]) => `${key}=${value} ${lease}`);
  if (told.toSorted().join('\n') === expected.toSorted().join('\n')) return undefined;
  return `the log has ${told.join(', ') || 'nothing'} there`;
}

function effectsOf(input: KvInput): (readonly [key: string, value: string | undefined, lease: bigint])[] {
  if (input.kind === 'get') return [];
  if (input.kind === 'delete') return [[input.key, undefined, 0n]];
  if (input.kind === 'swap') return [[input.key, input.value, 0n]];
  return input.writes.map(([key, value]) => [key, value, input.lease ?? 0n] as const);
}

function sameVersion(one: KeyVersion | undefined, other: KeyVersion | undefined): boolean {
  return textOf(one) === textOf(other);
}

function textOf(version: KeyVersion | undefined): string {
  if (version === undefined) return 'not there';
  const { value, createRevision, modRevision, lease } = version;
  return `${value}, version ${version.version} from ${createRevision}, at ${modRevision}, with lease ${lease}`;
}
