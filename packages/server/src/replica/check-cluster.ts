import { EngineError } from '../engines/engine-error.ts';

/** Throws EngineError `unusable` unless the log belongs to the wanted cluster. `found` is 0n for an empty log. */
export function checkCluster(wanted: bigint | undefined, found: bigint): void {
  if (wanted === undefined || wanted === found) return;
  const what = found === 0n ? 'this log is empty' : `this log belongs to the cluster ${found.toString(16)}`;
  const help =
    'give the right --engine, --engine-schema or --data-dir, or leave --cluster-id out to go on with this log';
  throw new EngineError('unusable', `${what}, and --cluster-id asks for the cluster ${wanted.toString(16)}: ${help}`);
}
