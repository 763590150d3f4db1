import { SeededRandom } from '@tenure/test-support';
import { Writer, type AcknowledgedWrite } from '../crash/writer.ts';
import type { ClusterMember } from './cluster-member.ts';

const retryMs = 50;
/** Writers without pauses would leave too little of a small machine to the servers. */
const pauseMs = 10;

/** Writers that continue through another server after an error. Writers with another seed write other keys. */
export class RoamingWriters {
  readonly #writers: readonly Writer[];
  readonly #done: Promise<unknown>;
  #stopped = false;

  constructor(members: () => readonly ClusterMember[], count: number, seed = 1) {
    this.#writers = Array.from(
      { length: count },
      (_, at) => new Writer(`writer-${seed}-${at}`, new SeededRandom(seed * 1_000 + at), pauseMs),
    );
    this.#done = Promise.all(this.#writers.map((writer, at) => this.#run(writer, members, at)));
  }

  get acknowledged(): readonly AcknowledgedWrite[] {
    return this.#writers.flatMap((writer) => writer.acknowledged);
  }

  /** Resolves when all have ended: no write is acknowledged after that. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const writer of this.#writers) writer.stop();
    await this.#done;
  }

  async #run(writer: Writer, members: () => readonly ClusterMember[], first: number): Promise<void> {
    for (let at = first; !this.#stopped; at += 1) {
      const standing = members();
      const member = standing[at % Math.max(1, standing.length)];
      if (member !== undefined) await writer.run(member.client);
      if (!this.#stopped) await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }
}
