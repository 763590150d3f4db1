import type { HeaderSeen } from './header-check.ts';
import type { KvOperation } from './kv-operation.ts';
import type { LeaseOperation } from './lease-operation.ts';
import type { Outcome } from './operation.ts';
import { Code, Refusal } from '../../conformance/client/refusal.ts';

/** The recorded calls of all clients of a run. */
export class RecordedHistory {
  readonly kv: KvOperation[] = [];
  readonly leases: LeaseOperation[] = [];
  readonly headers: HeaderSeen[] = [];

  get known(): number {
    return this.kv.filter(({ outcome }) => outcome.kind === 'known').length;
  }
}

/** Codes with which a server reports that a request had no effect and will have none. */
const definite: ReadonlySet<number> = new Set([
  Code.invalidArgument,
  Code.notFound,
  Code.failedPrecondition,
  Code.outOfRange,
  Code.unimplemented,
]);

/** Makes the call and records its beginning, end and outcome. Rejects for an error that no server may return. */
export async function timed<Output>(
  call: () => Promise<Output>,
): Promise<{ readonly outcome: Outcome<Output>; readonly calledMs: number; readonly returnedMs: number }> {
  const calledMs = performance.now();
  try {
    const output = await call();
    return { outcome: { kind: 'known', output }, calledMs, returnedMs: performance.now() };
  } catch (error) {
    if (error instanceof Refusal && error.code === Code.internal) throw error;
    const kind = error instanceof Refusal && definite.has(error.code) ? 'failed' : 'unknown';
    return { outcome: { kind }, calledMs, returnedMs: performance.now() };
  }
}
