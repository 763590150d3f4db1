import { systemClock } from '../../time/system-clock.ts';
import type { AppendAuthority } from '../append-permit.ts';

/** Lets a leader append and read whenever it asks. */
export const grantingAuthority: AppendAuthority = {
  beginAppend: () => ({
    timeMs: 0,
    began: { monotonicMs: systemClock.monotonicMs(), wallMs: systemClock.wallMs() },
  }),
  mayRead: () => true,
};
