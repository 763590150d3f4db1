import { queuePosition } from '../backend/queue-position.ts';
import type {
  BackendLimits,
  Claim,
  EnterOptions,
  Entered,
  Entry,
  EntryKey,
  LeaseBackend,
  QueueWatch,
  Renewal,
} from '../backend/lease-backend.ts';
import { BackendError } from '../errors/backend-error.ts';
import type { Clock } from '../time/clock.ts';
import type { Signal } from '../time/signal.ts';
import { systemClock } from '../time/system-clock.ts';
import { HeartbeatObserver } from './heartbeat-observer.ts';
import type { DynamoClient, DynamoItem, DynamoValue } from './dynamo-client.ts';
import { DynamoTable } from './dynamo-table.ts';
import type { Change, RowKey } from './dynamo-table.ts';
import { encodeEntry, entriesOfQueue, entryOfMember } from './stored-entry.ts';
import type { StoredEntry } from './stored-entry.ts';

export interface DynamodbBackendOptions {
  /** `new DynamoDB({ region })` of `@aws-sdk/client-dynamodb`. The backend never destroys it. */
  readonly client: DynamoClient;
  readonly table: string;
  /** The time between two reads of a waiter; 1000 by default. Each is a consistent read of the queue. */
  readonly pollIntervalMs?: number;
  readonly clock?: Clock;
}

export interface DynamodbBackend extends LeaseBackend {
  /** Creates the table, billed by request, unless it exists. It does not enable DynamoDB's TTL on `expires`. */
  migrate(): Promise<void>;
}

const queueRow = 'line';
const memberPrefix = 'member#';
const maxParallelCalls = 16;
/** An attempt fails only because of a concurrent change. */
const maxAttempts = 20;
/** How long after its expiry DynamoDB may delete the row of a member. Only for cleanup; no decision depends on it. */
const memberKeptSeconds = 24 * 60 * 60;
const never = new AbortController().signal;

/**
 * Leases in one table of DynamoDB, with conditional writes of single items only. The queue of a name is one item, so an
 * entry and its sequence number appear together. Members block no entry and have items of their own. No decision uses a
 * stored time: an entry has expired when its heartbeat has not changed for its TTL by the reader's clock. The reader
 * then removes it, on the condition that the heartbeat is still the same.
 */
export function dynamodbBackend(options: DynamodbBackendOptions): DynamodbBackend {
  return new TableBackend(options);
}

class TableBackend implements DynamodbBackend {
  readonly kind = 'dynamodb';
  readonly limits: BackendLimits = {
    minTtlMs: 100,
    maxTtlMs: 365 * 24 * 60 * 60 * 1000,
    maxNameBytes: 512,
    // A whole queue must fit into one item of 400 KB.
    maxDataBytes: 4 * 1024,
  };
  readonly pollIntervalMs: number;
  readonly #table: DynamoTable;
  readonly #clock: Clock;
  readonly #heartbeats = new HeartbeatObserver();
  #isClosed = false;

  constructor({ client, table, pollIntervalMs, clock }: DynamodbBackendOptions) {
    this.#table = new DynamoTable(client, table);
    this.pollIntervalMs = pollIntervalMs ?? 1000;
    this.#clock = clock ?? systemClock;
  }

  async enter(claim: Claim, { onlyIfHolds, signal }: EnterOptions): Promise<Entered> {
    this.#check();
    if (claim.mode === 'member') return this.#shown(claim, await this.#enterMember(claim, signal), signal);
    if (!onlyIfHolds) return this.#shown(claim, await this.#enterQueue(claim, undefined, signal), signal);
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const { entries, counter } = await this.#read(claim.name, signal);
      // The entries ahead only become fewer, so it still holds if no entry was added since the read.
      if (!queuePosition(entries, { ...claim, sequence: counter + 1n }).holds) return { sequence: undefined, entries };
      const sequence = await this.#enterQueue(claim, counter, signal);
      if (sequence !== undefined) return this.#shown(claim, sequence, signal);
    }
    throw new BackendError(
      this.kind,
      'unavailable',
      `the queue of ${claim.name} changes faster than it can be written`,
    );
  }

  async list(name: string, signal: Signal): Promise<readonly Entry[]> {
    this.#check();
    return (await this.#read(name, signal)).entries;
  }

  async renew(renewals: readonly Renewal[], signal: Signal): Promise<readonly boolean[]> {
    this.#check();
    return inParallel(renewals, (renewal) =>
      this.#change(renewal, signal, {
        fields: { beat: { S: crypto.randomUUID() }, ttl: { N: `${renewal.ttlMs}` } },
        memberFields: { expires: expiresAt(renewal.ttlMs) },
      }),
    );
  }

  async leave(entry: EntryKey, signal: Signal): Promise<boolean> {
    this.#check();
    const [ofQueue, ofMember] = conditions(entry);
    const change = { ...ofQueue, update: 'REMOVE #line.#id, #tickets.#id' };
    if ((await this.#table.update({ name: entry.name, row: queueRow }, change, signal)) !== undefined) return true;
    return this.#table.delete(memberKey(entry), ofMember, signal);
  }

  async update(entry: EntryKey, data: string, signal: Signal): Promise<boolean> {
    this.#check();
    return this.#change(entry, signal, { fields: { data: { S: data } }, memberFields: {} });
  }

  /** DynamoDB sends no notifications, so waiters poll. */
  watch(): QueueWatch {
    return { close: () => undefined };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  async migrate(): Promise<void> {
    this.#check();
    await this.#table.create(never);
  }

  #check(): void {
    if (this.#isClosed) throw new BackendError(this.kind, 'closed', 'the backend has been closed');
  }

  /** The queue without expired entries, and its last sequence number. */
  async #read(name: string, signal: Signal): Promise<{ readonly entries: readonly Entry[]; readonly counter: bigint }> {
    const items = await this.#table.rows(name, signal);
    const stored = items.flatMap((item) => entriesIn(name, item));
    const leftMs = this.#heartbeats.observe(name, stored, this.#clock.now().monotonicMs);
    const alive = await inParallel(stored, async (entry) => {
      const expiresInMs = leftMs.get(entry.id) ?? entry.ttlMs;
      if (expiresInMs <= 0 && (await this.#remove(entry, signal))) return [];
      const { beat: _, ...shown } = entry;
      return [{ ...shown, expiresInMs: Math.max(0, expiresInMs) }];
    });
    const counter = BigInt(items.find((item) => item['row']?.S === queueRow)?.['counter']?.N ?? 0);
    return { entries: alive.flat().toSorted((one, other) => (one.sequence < other.sequence ? -1 : 1)), counter };
  }

  async #shown(claim: Claim, sequence: bigint | undefined, signal: Signal): Promise<Entered> {
    const entries = await this.list(claim.name, signal).catch((error: unknown) => {
      throw unknownOutcome(error);
    });
    if (sequence !== undefined && entries.some(({ id }) => id === claim.id)) return { sequence, entries };
    throw new BackendError(this.kind, 'unavailable', `an entry of ${claim.name} was gone before it could be seen`);
  }

  /**
   * The entry, its sequence number and the counter change together in one item; a repeated request finds its id there.
   * With `after`, undefined if a number was assigned since that one.
   */
  async #enterQueue(claim: Claim, after: bigint | undefined, signal: Signal): Promise<bigint | undefined> {
    const key = { name: claim.name, row: queueRow };
    const isNext = after === undefined ? '' : ' AND #counter = :after';
    const change: Change = {
      update: 'SET #line.#id = :entry, #tickets.#id = #counter + :one, #counter = #counter + :one',
      condition: `attribute_exists(#line) AND attribute_not_exists(#line.#id)${isNext}`,
      names: { '#line': 'line', '#tickets': 'tickets', '#counter': 'counter', '#id': claim.id },
      values: {
        ':entry': { M: encodeEntry(claim, crypto.randomUUID()) },
        ':one': { N: '1' },
        ...(after === undefined ? {} : { ':after': { N: `${after}` } }),
      },
    };
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const item = await this.#table.update(key, change, signal);
      const found = item ?? (await this.#queueRow(claim.name, signal));
      const mine = entriesOfQueue(claim.name, found).find(({ id }) => id === claim.id);
      if (mine !== undefined) return mine.sequence;
      if (found?.['line'] === undefined) await this.#createQueue(key, signal);
      else if (after !== undefined) return undefined;
    }
    return undefined;
  }

  /** Read after a condition that was not met, possibly because a repeated request had already succeeded. */
  async #queueRow(name: string, signal: Signal): Promise<DynamoItem | undefined> {
    const rows = await this.#table.rows(name, signal).catch((error: unknown) => {
      throw unknownOutcome(error);
    });
    return rows.find((one) => one['row']?.S === queueRow);
  }

  async #createQueue(key: RowKey, signal: Signal): Promise<void> {
    const update =
      'SET #line = if_not_exists(#line, :none), #tickets = if_not_exists(#tickets, :none), ' +
      '#counter = if_not_exists(#counter, :zero)';
    const names = { '#line': 'line', '#tickets': 'tickets', '#counter': 'counter' };
    const values: Record<string, DynamoValue> = { ':none': { M: {} }, ':zero': { N: '0' } };
    await this.#table.update(key, { update, condition: 'attribute_not_exists(#line)', names, values }, signal);
  }

  async #enterMember(claim: Claim, signal: Signal): Promise<bigint> {
    const counted = await this.#table.update(
      { name: claim.name, row: queueRow },
      {
        update: 'ADD #counter :one',
        condition: 'attribute_not_exists(#none)',
        names: { '#counter': 'counter', '#none': 'none' },
        values: { ':one': { N: '1' } },
      },
      signal,
    );
    const sequence = counted?.['counter']?.N ?? '0';
    const fields = {
      ...encodeEntry(claim, crypto.randomUUID()),
      ticket: { N: sequence },
      expires: expiresAt(claim.ttlMs),
    };
    const { set, names, values } = setting(fields);
    const condition = 'attribute_not_exists(#ticket) OR #ticket = :ticket';
    await this.#table.update(memberKey(claim), { update: `SET ${set('')}`, condition, names, values }, signal);
    return BigInt(sequence);
  }

  /** Sets fields of one entry, in the queue or of a member, and returns whether it was there. */
  async #change(
    entry: EntryKey,
    signal: Signal,
    { fields, memberFields }: Record<'fields' | 'memberFields', Record<string, DynamoValue>>,
  ): Promise<boolean> {
    // The number 0 matches any entry only in `leave`.
    if (entry.sequence === 0n) return false;
    const [ofQueue, ofMember] = conditions(entry);
    const inQueue = setting(fields);
    const change = merged(ofQueue, `SET ${inQueue.set('#line.#id.')}`, inQueue);
    if ((await this.#table.update({ name: entry.name, row: queueRow }, change, signal)) !== undefined) return true;
    const ofRow = setting({ ...fields, ...memberFields });
    const memberChange = merged(ofMember, `SET ${ofRow.set('')}`, ofRow);
    return (await this.#table.update(memberKey(entry), memberChange, signal)) !== undefined;
  }

  /** Removes an entry, on the condition that it was not renewed since it was read. */
  async #remove(entry: StoredEntry, signal: Signal): Promise<boolean> {
    const values = { ':beat': { S: entry.beat } };
    if (entry.mode === 'member') {
      const names = { '#beat': 'beat' };
      return this.#table.delete(memberKey(entry), { condition: '#beat = :beat', names, values }, signal);
    }
    const change = {
      update: 'REMOVE #line.#id, #tickets.#id',
      condition: '#line.#id.#beat = :beat',
      names: { '#line': 'line', '#tickets': 'tickets', '#id': entry.id, '#beat': 'beat' },
      values,
    };
    return (await this.#table.update({ name: entry.name, row: queueRow }, change, signal)) !== undefined;
  }
}

/** After an entry may have been made, any failure becomes `unavailable`, because the outcome is unknown. */
function unknownOutcome(error: unknown): unknown {
  if (!(error instanceof BackendError)) return error;
  return new BackendError(error.backend, 'unavailable', `it may have been entered: ${error.message}`, { cause: error });
}

type Condition = Omit<Change, 'update'>;

/** The conditions that the entry is there, with its number unless that is 0: in the queue, and as a member. */
function conditions({ id, sequence }: EntryKey): readonly [Condition, Condition] {
  const values = sequence === 0n ? {} : { values: { ':ticket': { N: `${sequence}` } } };
  const test = (path: string): string => (sequence === 0n ? `attribute_exists(${path})` : `${path} = :ticket`);
  const queueNames = { '#line': 'line', '#tickets': 'tickets', '#id': id };
  return [
    { condition: `${test('#tickets.#id')} AND attribute_exists(#line.#id)`, names: queueNames, ...values },
    { condition: test('#ticket'), names: { '#ticket': 'ticket' }, ...values },
  ];
}

function merged(condition: Condition, update: string, { names, values }: ReturnType<typeof setting>): Change {
  const all = { ...condition.values, ...values };
  return { ...condition, update, names: { ...condition.names, ...names }, values: all };
}

/** The parts of an expression that sets fields. `set` prefixes each field with a path. */
function setting(fields: Readonly<Record<string, DynamoValue>>): {
  readonly set: (path: string) => string;
  readonly names: Record<string, string>;
  readonly values: Record<string, DynamoValue>;
} {
  const keys = Object.keys(fields);
  return {
    set: (path) => keys.map((key) => `${path}#${key} = :${key}`).join(', '),
    names: Object.fromEntries(keys.map((key) => [`#${key}`, key])),
    values: Object.fromEntries(keys.map((key) => [`:${key}`, fields[key]!])),
  };
}

function memberKey({ name, id }: Pick<EntryKey, 'name' | 'id'>): RowKey {
  return { name, row: memberPrefix + id };
}

function entriesIn(name: string, item: DynamoItem): readonly StoredEntry[] {
  const row = item['row']?.S ?? '';
  if (row === queueRow) return entriesOfQueue(name, item);
  return row.startsWith(memberPrefix) ? [entryOfMember(name, row.slice(memberPrefix.length), item)] : [];
}

function expiresAt(ttlMs: number): DynamoValue {
  return { N: `${Math.ceil((Date.now() + ttlMs) / 1000) + memberKeptSeconds}` };
}

async function inParallel<Item, Value>(
  items: readonly Item[],
  work: (item: Item) => Promise<Value>,
): Promise<readonly Value[]> {
  const values: Value[] = [];
  for (let at = 0; at < items.length; at += maxParallelCalls) {
    values.push(...(await Promise.all(items.slice(at, at + maxParallelCalls).map(work))));
  }
  return values;
}
