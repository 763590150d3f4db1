import { setTimeout as delay } from 'node:timers/promises';
import { EngineError } from '../engine-error.ts';
import type { Position } from '../log-engine.ts';
import { AppendWatch } from './append-watch.ts';
import { endBackend } from './end-backend.ts';
import type { LogSchema } from './log-schema.ts';
import type { PostgresAddress } from './postgres-address.ts';
import type { Backend, PostgresSession } from './postgres-session.ts';
import { openPrimarySession } from './primary-session.ts';
import { readTail } from './read-tail.ts';

/**
 * Tracks up to which position the log is as durable as the operator configured. A database shows commits that its
 * standbys do not have: when the wait for them was cancelled, when the waiting backend was terminated, and after a
 * crash. So a visible entry is not proof. There are two proofs: the server that appended an entry reports that the
 * append was acknowledged; or a commit of our own, begun after the entry was read, succeeds without a warning, and
 * covers everything that was written before it.
 */
export class DurableTail {
  readonly #address: PostgresAddress;
  readonly #schema: LogSchema;
  readonly #watch: AppendWatch;
  readonly #onKnown: () => void;
  readonly #closed = new AbortController();
  #known: Position | undefined;
  #before: Backend | undefined;
  #running: Promise<Position> | undefined;
  #next: Promise<Position> | undefined;
  #isProving = false;

  /** `onKnown` is called when more is known to be durable. */
  constructor(address: PostgresAddress, schema: LogSchema, onKnown: () => void) {
    this.#address = address;
    this.#schema = schema;
    this.#watch = new AppendWatch(address);
    this.#onKnown = onKnown;
  }

  /** The last position known to be durable; undefined while none is known. */
  get known(): Position | undefined {
    return this.#known;
  }

  /** An append that ended there was acknowledged. Reports may arrive out of order. */
  vouchedFor(position: Position): void {
    if (this.#known !== undefined && position.index <= this.#known.index) return;
    this.#known = position;
    this.#onKnown();
  }

  /** The log was read up to here without a report that it is durable: if none arrives, a proof is made. */
  wanted(): void {
    if (this.#isProving) return;
    this.#isProving = true;
    void this.#proveSoon(this.#known).finally(() => (this.#isProving = false));
  }

  /**
   * Resolves with the end of the log at the call or later, once that is durable. Rejects when the database cannot be
   * reached, and with `unavailable` when it has not confirmed the durability within a query timeout; the proof
   * continues meanwhile, so that repeated calls do not leave one backend behind each.
   */
  async prove(): Promise<Position> {
    const { queryTimeoutMs } = this.#address.timing;
    const over = new AbortController();
    const late = delay(queryTimeoutMs, undefined, { signal: over.signal }).then(() => {
      const why = `did not answer within ${queryTimeoutMs} ms that what it shows is durable`;
      throw new EngineError('unavailable', `the database ${why}: ${standbyHelp}`, { trouble: 'unreplicated' });
    });
    try {
      return await Promise.race([this.#queued(), late]);
    } finally {
      late.catch(() => undefined);
      over.abort();
    }
  }

  close(): void {
    this.#closed.abort(new EngineError('closed', 'the log engine is closed'));
  }

  /** A proof in progress may have begun before this call. */
  #queued(): Promise<Position> {
    if (this.#running === undefined) return this.#begin();
    this.#next ??= this.#running.then(
      () => this.#begin(),
      () => this.#begin(),
    );
    return this.#next;
  }

  #begin(): Promise<Position> {
    this.#next = undefined;
    const running = this.#run();
    this.#running = running;
    void running
      .catch(() => undefined)
      .finally(() => {
        if (this.#running === running) this.#running = undefined;
      });
    return running;
  }

  async #run(): Promise<Position> {
    const { signal } = this.#closed;
    const session = await openPrimarySession(this.#address, 'proof', signal);
    const close = (): void => session.destroy(signal.reason as Error);
    signal.addEventListener('abort', close);
    try {
      // The backend of a proof whose connection broke may still wait for a standby, for as long as there is none.
      if (this.#before !== undefined) await endBackend(session, this.#before);
      this.#before = session.backend;
      const tail = await readTail(session, this.#schema);
      await commitMarker(session, this.#watch);
      // An end before the known one means that the log has lost its end, and continues from here.
      this.#known = tail;
      this.#onKnown();
      this.#before = undefined;
      return tail;
    } finally {
      signal.removeEventListener('abort', close);
      await session.end();
    }
  }

  async #proveSoon(before: Position | undefined): Promise<void> {
    try {
      await delay(this.#address.timing.proofGraceMs, undefined, { signal: this.#closed.signal });
      // If more is known meanwhile, read the log again first.
      if (this.#known !== before) return;
      await this.#queued();
    } catch {
      // The next read of the log asks again.
    }
  }
}

const standbyHelp = 'its commits wait for a standby that is not there (synchronous_standby_names), or it is overloaded';

/** Takes as long as the standbys need to confirm it: no timeout ends it; a dead connection does. */
async function commitMarker(session: PostgresSession, watch: AppendWatch): Promise<void> {
  session.takeWarning();
  const text = `SELECT pg_logical_emit_message(true, 'tenure', '')`;
  await watch.over(session, session.query({ text, timeoutMs: 0 }));
  const warning = session.takeWarning();
  // The only warning possible here is a commit that gave up waiting for its standby, and yet succeeds.
  if (warning !== undefined)
    throw new EngineError('unavailable', `the database did not wait for a standby: ${warning}`, {
      trouble: 'unreplicated',
    });
}
