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

export const loginMethod = 'Auth/Authenticate';

/** Records that have one limit together. */
export interface RecordClass {
  /** 'Auth/*' is what is about users and roles; '*' is every other method. */
  readonly method: typeof loginMethod | 'Auth/*' | '*';
  /** '' is all callers without an identity. */
  readonly by: string;
  /** For users. */
  readonly allowed?: boolean;
}

/** In place of the records of a class that were too many in a minute. */
export interface SuppressedRecords extends RecordClass {
  readonly suppressed: number;
}

export interface AuditSink {
  record(record: AuditRecord | SuppressedRecords): void;
}
