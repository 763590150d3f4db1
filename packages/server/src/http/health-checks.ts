import type { AlarmKind } from '@tenure/core';

/** What the health paths ask the server. */
export interface HealthSource {
  /** The kinds of alarm that are raised now. */
  alarms(): readonly AlarmKind[];
  hasLeader(): boolean;
  /** Why nothing that needs the leader or the log is answered now, in words, where that is known. */
  problem(): string | undefined;
  /** Resolves when a read of that kind would be answered; rejects with the error that it would get. */
  read(options: { readonly serializable: boolean }): Promise<void>;
}

/** The answer of /health, in etcd's words. */
export interface Health {
  readonly health: 'true' | 'false';
  readonly reason: string;
}

/** As long as etcd lets a read take before it calls the server unhealthy. */
const readTimeoutMs = 5000;

/** /health: alarms first, then a leader, then a read. Alarms named in `excluded` ('NOSPACE') are passed over. */
export async function checkHealth(
  source: HealthSource,
  options: { readonly serializable: boolean; readonly excluded: ReadonlySet<string> },
): Promise<Health> {
  const alarm = source.alarms().find((kind) => !options.excluded.has(kind.toUpperCase()));
  if (alarm !== undefined) return { health: 'false', reason: `ALARM ${alarm.toUpperCase()}` };
  if (!options.serializable && !source.hasLeader()) {
    const problem = source.problem();
    return { health: 'false', reason: `RAFT NO LEADER${problem === undefined ? '' : `: ${problem}`}` };
  }
  const problem = await readProblem(source, options.serializable);
  if (problem !== undefined) return { health: 'false', reason: `RANGE ERROR:${problem}` };
  return { health: 'true', reason: '' };
}

/** One named check of /livez or /readyz: resolves with what is wrong, or undefined. */
export type NamedCheck = (source: HealthSource) => Promise<string | undefined>;

const serializableRead: NamedCheck = (source) => readProblem(source, true);
const linearizableRead: NamedCheck = (source) => readProblem(source, false);
/** Told at once, where a read would wait for a leader in vain, and probes give up on us first. */
const leader: NamedCheck = async (source) => {
  if (source.hasLeader()) return undefined;
  return source.problem() ?? 'etcdserver: no leader';
};
const dataCorruption: NamedCheck = async (source) =>
  source.alarms().includes('corrupt') ? 'alarm activated: CORRUPT' : undefined;

/**
 * Alive: the process answers. Nothing that a restart would not mend belongs here, or a supervisor restarts it in
 * vain.
 */
export const livenessChecks: ReadonlyMap<string, NamedCheck> = new Map([['serializable_read', serializableRead]]);

export const readinessChecks: ReadonlyMap<string, NamedCheck> = new Map([
  ['data_corruption', dataCorruption],
  ['serializable_read', serializableRead],
  ['leader', leader],
  ['linearizable_read', linearizableRead],
]);

async function readProblem(source: HealthSource, serializable: boolean): Promise<string | undefined> {
  if (!serializable && !source.hasLeader()) return source.problem() ?? 'etcdserver: no leader';
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<string>((resolve) => {
    timer = setTimeout(() => {
      const problem = source.problem();
      resolve(`etcdserver: request timed out${problem === undefined ? '' : `: ${problem}`}`);
    }, readTimeoutMs);
  });
  const read = source.read({ serializable }).then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  try {
    return await Promise.race([read, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
