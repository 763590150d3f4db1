import { standing } from '../backend/standing.ts';
import type {
  BackendLimits,
  Claim,
  EnterOptions,
  Entered,
  Entry,
  EntryKey,
  LeaseBackend,
  LineWatch,
  Renewal,
} from '../backend/lease-backend.ts';
import { BackendError } from '../errors/backend-error.ts';
import type { Clock } from '../time/clock.ts';
import type { Signal } from '../time/signal.ts';
import { systemClock } from '../time/system-clock.ts';
import { Beats } from './beats.ts';
import type { DynamoClient, DynamoItem, DynamoValue } from './dynamo-client.ts';
import { DynamoTable } from './dynamo-table.ts';
import type { Change, RowKey } from './dynamo-table.ts';
import { encodeEntry, entriesOfLine, entryOfMember } from './stored-entry.ts';
import type { StoredEntry } from './stored-entry.ts';

export interface DynamodbBackendOptions {
  /** `new DynamoDB({ region })` of `@aws-sdk/client-dynamodb`; it stays the caller's. */
  readonly client: DynamoClient;
  readonly table: string;
  /** Waiters look so often; 1 s by default. Each look costs a consistent read of the line. */
  readonly pollIntervalMs?: number;
  readonly clock?: Clock;
}

export interface DynamodbBackend extends LeaseBackend {
  /** Makes the table, billed by request, unless it is there. Enabling its TTL on `expires` stays with you. */
  migrate(): Promise<void>;
}

const lineRow = 'line';
const memberPrefix = 'member#';
const maxParallelCalls = 16;
/** Each fails only because somebody else came between. */
const maxAttempts = 20;
/** How long after its life DynamoDB may clear away what a member left: housekeeping, no decision rests on it. */
const memberKeptSeconds = 24 * 60 * 60;
const never = new AbortController().signal;

/**
 * Leases in one table of DynamoDB, with conditional writes of single items only. The line of a name is one item, so
 * that an entry and its ticket appear at once; members, who stand in nobody's way, have items of their own. No time is
 * stored: an entry is dead when its beat has not changed for its TTL by the clock of the one who looks, and whoever
 * finds that removes it, on the condition that the beat is still that one.
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
    // A whole line must fit into one item of 400 KB.
    maxDataBytes: 4 * 1024,
  };
  readonly pollIntervalMs: number;
  readonly #table: DynamoTable;
  readonly #clock: Clock;
  readonly #beats = new Beats();
  #isClosed = false;

  constructor({ client, table, pollIntervalMs, clock }: DynamodbBackendOptions) {
    this.#table = new DynamoTable(client, table);
    this.pollIntervalMs = pollIntervalMs ?? 1000;
    this.#clock = clock ?? systemClock;
  }

  async enter(claim: Claim, { onlyIfHolds, signal }: EnterOptions): Promise<Entered> {
    this.#check();
    if (claim.mode === 'member') return this.#shown(claim, await this.#enterMember(claim, signal), signal);
    if (!onlyIfHolds) return this.#shown(claim, await this.#enterLine(claim, undefined, signal), signal);
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const { entries, counter } = await this.#look(claim.name, signal);
      // What stands before an entry only gets less, so it still holds if nobody has come since the line was read.
      if (!standing(entries, { ...claim, ticket: counter + 1n }).holds) return { ticket: undefined, entries };
      const ticket = await this.#enterLine(claim, counter, signal);
      if (ticket !== undefined) return this.#shown(claim, ticket, signal);
    }
    throw new BackendError(this.kind, 'unavailable', `the line of ${claim.name} changes faster than it can be written`);
  }

  async list(name: string, signal: Signal): Promise<readonly Entry[]> {
    this.#check();
    return (await this.#look(name, signal)).entries;
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
    const [ofLine, ofMember] = conditions(entry);
    const change = { ...ofLine, update: 'REMOVE #line.#id, #tickets.#id' };
    if ((await this.#table.update({ name: entry.name, row: lineRow }, change, signal)) !== undefined) return true;
    return this.#table.delete(memberKey(entry), ofMember, signal);
  }

  async update(entry: EntryKey, data: string, signal: Signal): Promise<boolean> {
    this.#check();
    return this.#change(entry, signal, { fields: { data: { S: data } }, memberFields: {} });
  }

  /** DynamoDB tells nobody of a change: who waits looks again. */
  watch(): LineWatch {
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

  /** The line, without those who are found dead, and the last ticket that it gave. */
  async #look(name: string, signal: Signal): Promise<{ readonly entries: readonly Entry[]; readonly counter: bigint }> {
    const items = await this.#table.rows(name, signal);
    const stored = items.flatMap((item) => entriesIn(name, item));
    const leftMs = this.#beats.observe(name, stored, this.#clock.now().monotonicMs);
    const alive = await inParallel(stored, async (entry) => {
      const expiresInMs = leftMs.get(entry.id) ?? entry.ttlMs;
      if (expiresInMs <= 0 && (await this.#remove(entry, signal))) return [];
      const { beat: _, ...shown } = entry;
      return [{ ...shown, expiresInMs: Math.max(0, expiresInMs) }];
    });
    const counter = BigInt(items.find((item) => item['row']?.S === lineRow)?.['counter']?.N ?? 0);
    return { entries: alive.flat().toSorted((one, other) => (one.ticket < other.ticket ? -1 : 1)), counter };
  }

  async #shown(claim: Claim, ticket: bigint | undefined, signal: Signal): Promise<Entered> {
    const entries = await this.list(claim.name, signal).catch((error: unknown) => {
      throw unsure(error);
    });
    if (ticket !== undefined && entries.some(({ id }) => id === claim.id)) return { ticket, entries };
    throw new BackendError(this.kind, 'unavailable', `an entry of ${claim.name} was gone before it could be seen`);
  }

  /**
   * The entry, its ticket and the counter change together in one item; a repeated request finds its id there. With
   * `after` only if no ticket was given since that one, else undefined.
   */
  async #enterLine(claim: Claim, after: bigint | undefined, signal: Signal): Promise<bigint | undefined> {
    const key = { name: claim.name, row: lineRow };
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
      const found = item ?? (await this.#lineRow(claim.name, signal));
      const mine = entriesOfLine(claim.name, found).find(({ id }) => id === claim.id);
      if (mine !== undefined) return mine.ticket;
      if (found?.['line'] === undefined) await this.#makeLine(key, signal);
      else if (after !== undefined) return undefined;
    }
    return undefined;
  }

  /** After a condition that was not met, which may be because a request that was repeated had met it before. */
  async #lineRow(name: string, signal: Signal): Promise<DynamoItem | undefined> {
    const rows = await this.#table.rows(name, signal).catch((error: unknown) => {
      throw unsure(error);
    });
    return rows.find((one) => one['row']?.S === lineRow);
  }

  async #makeLine(key: RowKey, signal: Signal): Promise<void> {
    const update =
      'SET #line = if_not_exists(#line, :none), #tickets = if_not_exists(#tickets, :none), ' +
      '#counter = if_not_exists(#counter, :zero)';
    const names = { '#line': 'line', '#tickets': 'tickets', '#counter': 'counter' };
    const values: Record<string, DynamoValue> = { ':none': { M: {} }, ':zero': { N: '0' } };
    await this.#table.update(key, { update, condition: 'attribute_not_exists(#line)', names, values }, signal);
  }

  async #enterMember(claim: Claim, signal: Signal): Promise<bigint> {
    const counted = await this.#table.update(
      { name: claim.name, row: lineRow },
      {
        update: 'ADD #counter :one',
        condition: 'attribute_not_exists(#none)',
        names: { '#counter': 'counter', '#none': 'none' },
        values: { ':one': { N: '1' } },
      },
      signal,
    );
    const ticket = counted?.['counter']?.N ?? '0';
    const fields = {
      ...encodeEntry(claim, crypto.randomUUID()),
      ticket: { N: ticket },
      expires: expiresAt(claim.ttlMs),
    };
    const { set, names, values } = setting(fields);
    const condition = 'attribute_not_exists(#ticket) OR #ticket = :ticket';
    await this.#table.update(memberKey(claim), { update: `SET ${set('')}`, condition, names, values }, signal);
    return BigInt(ticket);
  }

  /** Sets fields of one entry, wherever it stands: whether it was there. */
  async #change(
    entry: EntryKey,
    signal: Signal,
    { fields, memberFields }: Record<'fields' | 'memberFields', Record<string, DynamoValue>>,
  ): Promise<boolean> {
    // A ticket of 0 stands for any only when one leaves; here it is the ticket of nobody.
    if (entry.ticket === 0n) return false;
    const [ofLine, ofMember] = conditions(entry);
    const inLine = setting(fields);
    const change = merged(ofLine, `SET ${inLine.set('#line.#id.')}`, inLine);
    if ((await this.#table.update({ name: entry.name, row: lineRow }, change, signal)) !== undefined) return true;
    const ofRow = setting({ ...fields, ...memberFields });
    const memberChange = merged(ofMember, `SET ${ofRow.set('')}`, ofRow);
    return (await this.#table.update(memberKey(entry), memberChange, signal)) !== undefined;
  }

  /** On the condition that it was not renewed since it was read. */
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
    return (await this.#table.update({ name: entry.name, row: lineRow }, change, signal)) !== undefined;
  }
}

/** What goes wrong when an entry may have been made does not say that it was not. */
function unsure(error: unknown): unknown {
  if (!(error instanceof BackendError)) return error;
  return new BackendError(error.backend, 'unavailable', `it may have been entered: ${error.message}`, { cause: error });
}

type Condition = Omit<Change, 'update'>;

/** That the entry is there, with its ticket unless that is 0: in the line, and as a member. */
function conditions({ id, ticket }: EntryKey): readonly [Condition, Condition] {
  const values = ticket === 0n ? {} : { values: { ':ticket': { N: `${ticket}` } } };
  const test = (path: string): string => (ticket === 0n ? `attribute_exists(${path})` : `${path} = :ticket`);
  const lineNames = { '#line': 'line', '#tickets': 'tickets', '#id': id };
  return [
    { condition: `${test('#tickets.#id')} AND attribute_exists(#line.#id)`, names: lineNames, ...values },
    { condition: test('#ticket'), names: { '#ticket': 'ticket' }, ...values },
  ];
}

function merged(condition: Condition, update: string, { names, values }: ReturnType<typeof setting>): Change {
  const all = { ...condition.values, ...values };
  return { ...condition, update, names: { ...condition.names, ...names }, values: all };
}

/** The parts of an expression that sets fields; `set` puts a path before each. */
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
  if (row === lineRow) return entriesOfLine(name, item);
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
