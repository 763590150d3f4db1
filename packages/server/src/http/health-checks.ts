import type { AlarmKind } from '@tenure/core';
import { errorCatalogue } from '@tenure/protocol';
import { GrpcStatus } from '@tenure/grpc-server';

/** The functions of the server that the health paths use. */
export interface HealthSource {
  /** The kinds of the raised alarms. */
  alarms(): readonly AlarmKind[];
  hasLeader(): boolean;
  /** Why requests that need the leader or the log fail now, where that is known, as a text for any client. */
  problem(): string | undefined;
  /** Resolves when a read of that kind would succeed; rejects with the GrpcStatus that it would get. */
  read(options: { readonly serializable: boolean }): Promise<void>;
}

/** The response of /health, in etcd's format. */
export interface Health {
  readonly health: 'true' | 'false';
  readonly reason: string;
}

/** etcd's timeout for a read before it reports the server as unhealthy. */
const readTimeoutMs = 5000;

const noLeader = errorCatalogue.NoLeader.text;
const timedOut = errorCatalogue.Timeout.text;

/** /health: alarms first, then a leader, then a read. Alarms named in `excluded` ('NOSPACE') are skipped. */
export async function checkHealth(
  source: HealthSource,
  options: { readonly serializable: boolean; readonly excluded: ReadonlySet<string> },
): Promise<Health> {
  const alarm = source.alarms().find((kind) => !options.excluded.has(kind.toUpperCase()));
  if (alarm !== undefined) return { health: 'false', reason: `ALARM ${alarm.toUpperCase()}` };
  if (!options.serializable && !source.hasLeader()) {
    return { health: 'false', reason: 'RAFT NO LEADER' };
  }
  const failure = await readFailure(source, options.serializable);
  if (failure !== undefined) return { health: 'false', reason: `RANGE ERROR:${failure.text}` };
  return { health: 'true', reason: '' };
}

/** One named check of /livez or /readyz: resolves with the fault, or undefined. */
export type NamedCheck = (source: HealthSource) => Promise<string | undefined>;

const serializableRead: NamedCheck = (source) => readProblem(source, true);
const linearizableRead: NamedCheck = (source) => readProblem(source, false);
/** Reported at once: a read would wait for a leader until the probe times out. */
const leader: NamedCheck = async (source) => {
  if (source.hasLeader()) return undefined;
  return source.problem() ?? noLeader;
};
const dataCorruption: NamedCheck = async (source) =>
  source.alarms().includes('corrupt') ? 'alarm activated: CORRUPT' : undefined;

/**
 * Alive: the process answers. A check that a restart would not fix does not belong here, or a supervisor restarts the
 * server without effect.
 */
export const livenessChecks: ReadonlyMap<string, NamedCheck> = new Map([['serializable_read', serializableRead]]);

export const readinessChecks: ReadonlyMap<string, NamedCheck> = new Map([
  ['data_corruption', dataCorruption],
  ['serializable_read', serializableRead],
  ['leader', leader],
  ['linearizable_read', linearizableRead],
]);

/** The error of a read: etcd's text, and the reason. */
interface ReadFailure {
  readonly text: string;
  readonly reason: string | undefined;
}

async function readProblem(source: HealthSource, serializable: boolean): Promise<string | undefined> {
  const failure = await readFailure(source, serializable);
  return failure === undefined ? undefined : (failure.reason ?? failure.text);
}

async function readFailure(source: HealthSource, serializable: boolean): Promise<ReadFailure | undefined> {
  if (!serializable && !source.hasLeader()) return { text: noLeader, reason: source.problem() };
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<ReadFailure>((resolve) => {
    timer = setTimeout(() => resolve({ text: timedOut, reason: source.problem() }), readTimeoutMs);
  });
  const read = source.read({ serializable }).then(
    () => undefined,
    (error: unknown) => {
      // Any other error is a bug, or contains texts of other programs: its text is not for clients.
      if (!(error instanceof GrpcStatus)) return { text: 'internal error', reason: undefined };
      return { text: error.message, reason: error.reason };
    },
  );
  try {
    return await Promise.race([read, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
