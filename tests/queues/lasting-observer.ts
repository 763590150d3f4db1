import { ObserveStream } from '../../conformance/client/observe-stream.ts';
import type { CallStatus } from '../../conformance/client/refusal.ts';
import type { ClusterMember } from '../cluster/cluster-member.ts';
import { eventually } from '../cluster/cluster.ts';
import { isOfOutage } from './outage.ts';

/** One leader as an observer was told. */
export interface SeenLeader {
  readonly key: string;
  readonly value: string;
  readonly modRevision: number;
}

/**
 * An observer of an election that does what a client does: when its call ends with an error of an outage, it calls the
 * next server.
 */
export class LastingObserver {
  /** What each of its calls was told, in order. */
  readonly calls: SeenLeader[][] = [];
  readonly #name: Uint8Array<ArrayBuffer>;
  readonly #members: () => readonly ClusterMember[];
  #at: number;
  #stream: ObserveStream | undefined;
  #isStopped = false;
  #problem: Error | undefined;

  /** Begins with the member of that number. `members`: the servers that run now. */
  constructor(name: string, members: () => readonly ClusterMember[], first: number) {
    this.#name = Uint8Array.from(Buffer.from(name));
    this.#members = members;
    this.#at = first;
    this.#run().catch((error: unknown) => (this.#problem = error as Error));
  }

  get last(): SeenLeader | undefined {
    return this.calls.findLast((call) => call.length > 0)?.at(-1);
  }

  async seen(value: string): Promise<void> {
    const isSeen = await eventually(`an observer sees ${value}`, async () => {
      return this.#problem ?? (this.last?.value === value || undefined);
    });
    if (isSeen instanceof Error) throw isSeen;
  }

  stop(): void {
    this.#isStopped = true;
    this.#stream?.close();
  }

  async #run(): Promise<void> {
    for (; !this.#isStopped; this.#at += 1) {
      const members = this.#members();
      const status = await this.#observe(members[this.#at % members.length]!);
      if (!this.#isStopped && !isOfOutage(status)) {
        throw new Error(`an observer got an error that no client retries: ${status.code} ${status.details}`);
      }
    }
  }

  /** Until the call is over. */
  async #observe(member: ClusterMember): Promise<CallStatus> {
    const stream = new ObserveStream(member.client, this.#name);
    this.#stream = stream;
    const seen: SeenLeader[] = [];
    this.calls.push(seen);
    let status: CallStatus | undefined;
    void stream.ended.then((ended) => (status = ended));
    for (;;) {
      const next = await stream.next().catch(() => undefined);
      if (next === undefined) {
        // The call is over, or nothing has happened for a while.
        if (status !== undefined) return status;
        continue;
      }
      const { key, value, modRevision } = next.kv!;
      const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();
      seen.push({ key: text(key), value: text(value), modRevision: Number(modRevision) });
    }
  }
}
