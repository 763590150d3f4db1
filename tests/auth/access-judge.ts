import { Code } from '../../conformance/client/refusal.ts';
import { Timeline } from './timeline.ts';

/** What is known about a user of the load. The password of each credential is another one. */
export class UserFacts {
  readonly name: string;
  /** Whether the user may read and write the keys below its name. */
  readonly permitted = new Timeline(true);
  /** Counts the passwords; 0 while the user does not exist. */
  readonly credential = new Timeline(1);

  constructor(name: string) {
    this.name = name;
  }

  password(version = this.credential.last): string {
    return `password ${version} of ${this.name}`;
  }
}

export interface Token {
  readonly text: string;
  readonly version: number;
  /** When the request for it began. */
  readonly beganMs: number;
}

export interface Answered {
  /** What was asked, of which server: for messages. */
  readonly what: string;
  readonly server: string;
  readonly token: Token | undefined;
  readonly beganMs: number;
  readonly endedMs: number;
  /** 0: it was allowed. */
  readonly code: number;
  readonly details: string;
}

export const texts = {
  denied: 'etcdserver: permission denied',
  invalid: 'etcdserver: invalid auth token',
  empty: 'etcdserver: user name is empty',
  old: 'etcdserver: revision of auth store is old',
} as const;

/**
 * Compares each answer with what the changes of permissions that were acknowledged before its request allow. A request
 * at the same time as a change may be decided either way.
 */
export class AccessJudge {
  readonly enabled = new Timeline(true);
  readonly violations: string[] = [];
  readonly counts = { allowed: 0, denied: 0, identity: 0, unknown: 0 };
  /** When each server was last started again: it has forgotten the simple tokens from before. */
  readonly startedMs = new Map<string, number>();

  /** Judges an answer. Returns false if the client must log in again. */
  judge(user: UserFacts | undefined, answer: Answered): boolean {
    const { beganMs, endedMs, code, details } = answer;
    const enabled = this.enabled.possible(beganMs, endedMs);
    if (code === Code.ok) {
      this.counts.allowed += 1;
      if (!enabled.includes(false) && !isPermitted(user, answer)) this.#violated('was allowed', user, answer);
      return true;
    }
    if (details === texts.denied) {
      this.counts.denied += 1;
      if (!enabled.includes(true) || !mayBeDenied(user, answer)) this.#violated('was denied', user, answer);
      return true;
    }
    if (details === texts.invalid || details === texts.empty || details === texts.old) {
      this.counts.identity += 1;
      if (!enabled.includes(true)) this.#violated('was asked for an identity', user, answer);
      else if (details === texts.invalid && !this.#mayBeInvalid(user, answer)) {
        this.#violated('had its token refused', user, answer);
      } else if (details === texts.empty && answer.token !== undefined && !this.#wasDisabled(answer)) {
        this.#violated('had its token overlooked', user, answer);
      }
      return false;
    }
    this.counts.unknown += 1;
    // The server was killed, or there was no leader: nothing is known of the request.
    if (code !== Code.unavailable && code !== Code.deadlineExceeded) this.#violated('failed', user, answer);
    return true;
  }

  note(violation: string): void {
    this.violations.push(violation);
  }

  #wasDisabled({ beganMs, endedMs }: Answered): boolean {
    return this.enabled.possible(beganMs, endedMs).includes(false);
  }

  #mayBeInvalid(user: UserFacts | undefined, { token, endedMs, server }: Answered): boolean {
    if (user === undefined || token === undefined) return false;
    const sinceMs = token.beganMs;
    if ((this.startedMs.get(server) ?? -Infinity) > sinceMs) return true;
    return (
      user.credential.possible(sinceMs, endedMs).length > 1 || this.enabled.possible(sinceMs, endedMs).includes(false)
    );
  }

  #violated(how: string, user: UserFacts | undefined, answer: Answered): void {
    const { what, server, beganMs, endedMs, code, details } = answer;
    const known = user === undefined ? '' : `, permitted ${user.permitted.possible(beganMs, endedMs).join('|')}`;
    const credential = user === undefined ? '' : `, credential ${user.credential.possible(beganMs, endedMs).join('|')}`;
    const enabled = this.enabled.possible(beganMs, endedMs).join('|');
    this.violations.push(
      `${what} of ${user?.name ?? 'a client without a token'} through ${server} ${how} (${code} ${details}), from ` +
        `${Math.round(beganMs)} to ${Math.round(endedMs)}, enabled ${enabled}${known}${credential}, ` +
        `token ${answer.token?.version}`,
    );
  }
}

function isPermitted(user: UserFacts | undefined, { token, beganMs, endedMs }: Answered): boolean {
  if (user === undefined || token === undefined) return false;
  const isMeant = user.credential.possible(beganMs, endedMs).includes(token.version);
  return isMeant && user.permitted.possible(beganMs, endedMs).includes(true);
}

function mayBeDenied(user: UserFacts | undefined, { token, beganMs, endedMs }: Answered): boolean {
  // A client without a token is asked for one.
  if (user === undefined || token === undefined) return false;
  const credentials = user.credential.possible(beganMs, endedMs);
  return credentials.includes(0) || user.permitted.possible(beganMs, endedMs).includes(false);
}
