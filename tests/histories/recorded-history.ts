import type { HeaderSeen } from './header-check.ts';
import type { KvOperation } from './kv-operation.ts';
import type { LeaseOperation } from './lease-operation.ts';
import type { Outcome } from './operation.ts';
import { Code, Refusal } from '../../conformance/client/refusal.ts';

/** What all clients of a run recorded. */
export class RecordedHistory {
  readonly kv: KvOperation[] = [];
  readonly leases: LeaseOperation[] = [];
  readonly headers: HeaderSeen[] = [];

  get known(): number {
    return this.kv.filter(({ outcome }) => outcome.kind === 'known').length;
  }
}

/** Codes with which a server says that a request did nothing and will do nothing. */
const definite: ReadonlySet<number> = new Set([
  Code.invalidArgument,
  Code.notFound,
  Code.failedPrecondition,
  Code.outOfRange,
  Code.unimplemented,
]);

/** Makes the call and tells when it began and ended and what became of it. Rejects for what no server may answer. */
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
