import type { ServerOptions } from '../servers/server-options.ts';
import type { CaseContext } from './case-context.ts';

/** One rule of the API, with an expectation that etcd has confirmed (or that its mark explains). */
export interface Case {
  readonly name: string;
  /** The first etcd version with this behaviour, if not 3.4: older ones do not run the case. */
  readonly since?: '3.5' | '3.6';
  /** Why etcd does not run the case: an extension of Tenure, or a rule that is stricter than etcd's. */
  readonly tenureOnly?: string;
  /** Why Tenure does not run the case: it is stricter than etcd here, as a decision page says. */
  readonly stricter?: string;
  readonly timeoutMs?: number;
  run(t: CaseContext): Promise<void>;
}

/**
 * Cases about one subject. The cases of groups with the same options (the same object) share a server, all others share
 * a few; no two run on one at the same time.
 */
export interface CaseGroup {
  readonly name: string;
  readonly server?: ServerOptions;
  /** Auth is enabled on the server of these options before the first case, and the cases run as the user `root`. */
  readonly asRoot?: true;
  readonly cases: readonly Case[];
}
