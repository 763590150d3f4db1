import { CaseContext } from '../cases/case-context.ts';
import { textOf } from '../cases/bytes.ts';
import { Refusal } from '../client/refusal.ts';
import type { RunningServer } from '../servers/server-options.ts';
import type { Operation, Place } from './operation.ts';
import { Watched } from './watched.ts';

const revisionFields = new Set(['revision', 'createRevision', 'modRevision', 'compactRevision']);
/** Fields that differ between servers by design: the responding server, and Tenure's extensions. */
const ignoredFields = new Set(['$typeName', '$unknown', 'clusterId', 'memberId', 'raftTerm', 'TTLMs', 'grantedTTLMs']);

/** Whether `Run.send` got a refusal. */
export function isRefusal(answer: unknown): boolean {
  return typeof answer === 'object' && answer !== null && 'code' in answer;
}

/** After every key of a run, but within its watches. */
const lastKeyName = '\xff\xfe';

/** The result of a run: its keys, and the events of each of its watches. */
export interface RunEnd {
  readonly state: unknown;
  readonly watched: readonly { readonly events: readonly unknown[]; readonly isCutShort: boolean }[];
}

/** One history on one server, in a separate part of the key space. */
export class Run implements Place {
  readonly baseRevision: bigint;
  readonly #context: CaseContext;
  readonly #number: number;
  readonly #watches: Watched[] = [];

  private constructor(context: CaseContext, baseRevision: bigint, number: number) {
    this.#context = context;
    this.baseRevision = baseRevision;
    this.#number = number;
  }

  static async begin(server: RunningServer, number: number): Promise<Run> {
    const context = new CaseContext(server, `d${number}/`);
    return new Run(context, await context.revision(), number);
  }

  key(name: string): Uint8Array<ArrayBuffer> {
    return this.#context.key(name);
  }

  leaseId(index: number): bigint {
    return BigInt(this.#number * 1000 + index + 1);
  }

  /** The reply or the refusal, in a form comparable with the other server's. */
  async send(operation: Operation): Promise<unknown> {
    try {
      return this.#comparable(await this.#call(operation));
    } catch (error) {
      if (error instanceof Refusal) return { code: error.code, details: error.details };
      throw error;
    }
  }

  #call(operation: Operation): Promise<object> {
    const { kv, lease } = this.#context;
    switch (operation.call) {
      case 'range':
        return kv.range(operation.make(this));
      case 'put':
        return kv.put(operation.make(this));
      case 'deleteRange':
        return kv.deleteRange(operation.make(this));
      case 'txn':
        return kv.txn(operation.make(this));
      case 'compact':
        return kv.compact(operation.make(this));
      case 'leaseGrant':
        return lease.leaseGrant(operation.make(this));
      case 'leaseRevoke':
        return lease.leaseRevoke(operation.make(this));
      case 'leaseTimeToLive':
        return lease.leaseTimeToLive(operation.make(this)).then(({ header, TTL, grantedTTL, keys }) => ({
          header,
          alive: TTL > 0n,
          grantedTTL,
          keys: keys.map((key) => textOf(key)).toSorted(),
        }));
      case 'watch':
        return this.#watch(operation);
      case 'keepAlive':
        return this.#context.keepAliveStream().renew(operation.make(this).ID);
      default:
        return operation satisfies never;
    }
  }

  async #watch(operation: Operation & { call: 'watch' }): Promise<object> {
    const request = operation.make(this);
    // A watch from a future revision might never see the last key.
    const latest = (await this.#context.revision()) + 1n;
    const startRevision = request.startRevision < latest ? request.startRevision : latest;
    const watched = new Watched(this.#context.watchStream(), { ...request, startRevision });
    this.#watches.push(watched);
    return watched.create();
  }

  async end(): Promise<RunEnd> {
    const state = this.#comparable(await this.#context.kv.range(this.#context.all()));
    await this.#context.kv.deleteRange(this.#context.all());
    await this.#context.put(lastKeyName);
    await this.#context.delete(lastKeyName);
    const watched = [];
    for (const each of this.#watches) {
      const { events, isCutShort } = await each.collect(this.key(lastKeyName));
      watched.push({ events: events.map((event) => this.#comparable(event)), isCutShort });
    }
    return { state, watched };
  }

  close(): Promise<void> {
    return this.#context.close();
  }

  #comparable(value: unknown, field = ''): unknown {
    if (typeof value === 'bigint') return revisionFields.has(field) && value !== 0n ? value - this.baseRevision : value;
    if (value instanceof Uint8Array) return textOf(value).replace(textOf(this.key('')), '');
    if (Array.isArray(value)) return value.map((each) => this.#comparable(each));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .filter(([name]) => !ignoredFields.has(name))
        .map(([name, each]) => [name, name === 'ID' ? 'lease' : this.#comparable(each, name)]),
    );
  }
}
