import type { AuditedRequest } from './audited-request.ts';

/** One line of the audit log. */
export interface AuditRecord extends AuditedRequest {
  /** The method without its package: 'KV/Put'. */
  readonly method: string;
  /** Who asked; '' without an identity. */
  readonly by: string;
  readonly address: string;
  /** False if the request was refused for its requester's identity or permissions. */
  readonly allowed: boolean;
  /** The text of the refusal or error. */
  readonly error?: string;
}

/** Failed logins are apart, so that other requests do not hide that passwords are guessed; '*' is all others. */
export const suppressedClasses = ['Auth/Authenticate', '*'] as const;

/** In place of the records of callers without an identity that were too many in a minute. */
export interface SuppressedRecords {
  readonly method: (typeof suppressedClasses)[number];
  readonly by: '';
  readonly suppressed: number;
}

export interface AuditSink {
  record(record: AuditRecord | SuppressedRecords): void;
}
