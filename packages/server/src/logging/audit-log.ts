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
 * so it can be rotated by copying and truncating it. Rejects when it cannot be opened.
 */
export function openAuditLog({ path, onTrouble }: AuditLogOptions): Promise<AuditLog> {
  const options = { dest: path, append: true, mode: 0o600, sync: false, minLength: writeBytes };
  const file = pino.destination({ ...options, maxLength: maxWaitingBytes, periodicFlush: flushIntervalMs });
  let hasDropped = false;
  file.on('drop', () => {
    if (!hasDropped) onTrouble('the audit log is slower than the requests: records are missing in it');
    hasDropped = true;
  });
  return new Promise((resolve, reject) => {
    file.once('error', reject);
    file.once('ready', () => {
      file.off('error', reject);
      let hasFailed = false;
      file.on('error', (error: Error) => {
        if (!hasFailed) onTrouble(`the audit log cannot be written: ${error.message}`);
        hasFailed = true;
      });
      resolve({
        record: (record) => void file.write(`${JSON.stringify({ time: new Date().toISOString(), ...record })}\n`),
        close: () =>
          new Promise((closed) => {
            file.once('close', closed);
            file.once('error', () => closed());
            if (hasFailed) file.destroy();
            else file.end();
          }),
      });
    });
  });
}
