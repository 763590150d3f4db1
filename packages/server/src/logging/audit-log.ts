import { openSync } from 'node:fs';
import { pino } from 'pino';

/** Bytes of records that wait to be written; beyond it records are dropped and counted. */
const maxWaitingBytes = 16 * 1024 * 1024;
/** Records are collected into writes of about this size. */
const writeBytes = 4 * 1024;
const flushIntervalMs = 1_000;

export interface AuditLog {
  /** Adds a line. Never throws and never waits: a disk that cannot follow costs records, not requests. */
  record(record: object): void;
  /** Resolves when what waits is written and the file is closed. */
  close(): Promise<void>;
}

export interface AuditLogOptions {
  /** Appended to, and made with mode 0600 if it is missing. */
  readonly path: string;
  /** The file cannot be written, or records were dropped. Called once for each kind of trouble. */
  readonly onTrouble: (problem: string) => void;
}

/**
 * One JSON line per record, with the time. A record is in the file within a second. The file is opened for appending,
 * so it can be rotated by copying and truncating it. Throws when it cannot be opened.
 */
export function openAuditLog({ path, onTrouble }: AuditLogOptions): AuditLog {
  // Opened here: a stream that could not open its file would go on trying to write to it.
  const dest = openSync(path, 'a', 0o600);
  const options = { dest, sync: false, minLength: writeBytes, maxLength: maxWaitingBytes };
  const file = pino.destination({ ...options, periodicFlush: flushIntervalMs });
  let hasDropped = false;
  let hasFailed = false;
  file.on('drop', () => {
    if (!hasDropped) onTrouble('the audit log is slower than the requests: records are missing in it');
    hasDropped = true;
  });
  file.on('error', (error: Error) => {
    if (!hasFailed) onTrouble(`the audit log cannot be written: ${error.message}`);
    hasFailed = true;
  });
  return {
    record: (record) => void file.write(`${JSON.stringify({ time: new Date().toISOString(), ...record })}\n`),
    close: () =>
      new Promise((closed) => {
        file.once('close', closed);
        file.once('error', () => closed());
        if (hasFailed) file.destroy();
        else file.end();
      }),
  };
}
