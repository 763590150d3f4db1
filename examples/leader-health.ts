import type { LeaseHandle } from 'tenure';

/** The answer to a probe: the status is 200 while this process leads by its own clocks, and 503 otherwise. */
export function leaderHealth(leadership: LeaseHandle): {
  status: number;
  body: { leads: boolean; token: string | null };
} {
  const token = leadership.hold?.fencingToken;
  return {
    status: token === undefined ? 503 : 200,
    body: { leads: token !== undefined, token: token?.toString() ?? null },
  };
}
