import type { PostgresAddress } from './postgres-address.ts';
import { causesOf, sqlStateOf } from './postgres-failure.ts';
import type { Backend, PostgresSession } from './postgres-session.ts';
import { openPrimarySession } from './primary-session.ts';

/**
 * A backend that has just finished, or that waits for data still in the network, also looks idle, but not at this many
 * checks in a row.
 */
const idleLooksMax = 3;
const overloaded = '53300';

/**
 * Watches an append that takes long. No timeout ends it, because a commit may wait for a standby as long as the
 * operator allows. But if the response can never come, the session is closed. Another connection distinguishes the two:
 * it finds the backend active, or idle, or gone, or finds no primary at all.
 */
export class AppendWatch {
  readonly #address: PostgresAddress;

  constructor(address: PostgresAddress) {
    this.#address = address;
  }

  /** Settles as `answer` does; closes `session`, so that it rejects, when no backend works on it any more. */
  async over<Answer>(session: PostgresSession, answer: Promise<Answer>): Promise<Answer> {
    const { watchIntervalMs } = this.#address.timing;
    let done: AbortController | undefined;
    let isOver = false;
    let idleLooks = 0;
    let unsentBytes = session.unsentBytes;
    const look = async (): Promise<void> => {
      done ??= new AbortController();
      const seen = await this.#look(session.backend, done.signal);
      if (isOver) return;
      const isMoving = unsentBytes !== session.unsentBytes;
      unsentBytes = session.unsentBytes;
      idleLooks = seen === 'idle' && !isMoving ? idleLooks + 1 : 0;
      if (seen === 'unreachable') session.destroy(new Error('an append has no answer, and no primary can be reached'));
      else if (idleLooks >= idleLooksMax) session.destroy(new Error('the answer to an append was lost on its way'));
      else timer = setTimeout(() => void look(), watchIntervalMs);
    };
    let timer = setTimeout(() => void look(), watchIntervalMs);
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
      isOver = true;
      done?.abort();
    }
  }

  async #look({ pid, applicationName }: Backend, signal: AbortSignal): Promise<'busy' | 'idle' | 'unreachable'> {
    let probe: PostgresSession | undefined;
    try {
      probe = await openPrimarySession(this.#address, 'probe', signal);
      const text = 'SELECT state FROM pg_stat_activity WHERE pid = $1 AND application_name = $2';
      const [backend] = await probe.query({ text, values: [pid, applicationName] });
      return backend?.['state'] === 'active' ? 'busy' : 'idle';
    } catch (error) {
      return causesOf(error).some((cause) => sqlStateOf(cause) === overloaded) ? 'busy' : 'unreachable';
    } finally {
      await probe?.end();
    }
  }
}
