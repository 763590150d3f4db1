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
 * Knows up to where the log is as durable as the operator asked for. A database shows commits that its standbys do not
 * have: where the wait for them was cancelled, where the backend that waited was ended, and after a crash. So that what
 * it shows is no proof. There are two: whoever appended an entry says that the append was acknowledged; or a commit of
 * our own, begun after the entry was seen, comes back without a warning, and with it all that was written before it.
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

  /** `onKnown` is told when more is known to be durable. */
  constructor(address: PostgresAddress, schema: LogSchema, onKnown: () => void) {
    this.#address = address;
    this.#schema = schema;
    this.#watch = new AppendWatch(address);
    this.#onKnown = onKnown;
  }

  /** Up to where the log was durable when that was last heard of; undefined while nothing is known. */
  get known(): Position | undefined {
    return this.#known;
  }

  /** An append that ended there was acknowledged. Later appends may have been heard of before. */
  vouchedFor(position: Position): void {
    if (this.#known !== undefined && position.index <= this.#known.index) return;
    this.#known = position;
    this.#onKnown();
  }

  /** The log was seen to end where nobody has said that it is durable: if that stays so, it is proved. */
  wanted(): void {
    if (this.#isProving) return;
    this.#isProving = true;
    void this.#proveSoon(this.#known).finally(() => (this.#isProving = false));
  }

  /**
   * Resolves with where the log ended at the call or later, once that is durable. Rejects when the database cannot be
   * asked, and with `unavailable` when it has not confirmed it in the time of a query; the question stands meanwhile,
   * so that those who ask again and again do not leave a backend behind each time.
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

  /** A proof that is under way may have begun before this call. */
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
      // A proof whose connection broke may wait for a standby still, and would for as long as there is none.
      if (this.#before !== undefined) await endBackend(session, this.#before);
      this.#before = session.backend;
      const tail = await readTail(session, this.#schema);
      await commitMarker(session, this.#watch);
      // What is older than what is known is so because the log has lost its end, and goes on from here.
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
      // Whoever has heard more meanwhile looks again first.
      if (this.#known !== before) return;
      await this.#queued();
    } catch {
      // Whoever looks at the log next asks again.
    }
  }
}

const standbyHelp = 'its commits wait for a standby that is not there (synchronous_standby_names), or it is overloaded';

/** Takes as long as the standbys need to confirm it: no clock ends it, and a connection that is dead does. */
async function commitMarker(session: PostgresSession, watch: AppendWatch): Promise<void> {
  session.takeWarning();
  const text = `SELECT pg_logical_emit_message(true, 'tenure', '')`;
  await watch.over(session, session.query({ text, timeoutMs: 0 }));
  const warning = session.takeWarning();
  // The only thing that warns here is a commit that gave up waiting for its standby, and yet succeeds.
  if (warning !== undefined)
    throw new EngineError('unavailable', `the database did not wait for a standby: ${warning}`, {
      trouble: 'unreplicated',
    });
}
