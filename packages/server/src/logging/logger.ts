import { type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino';
import type { ServerConfig } from '../config/server-config.ts';

/**
 * Structured logs: `log.warn({ leaseId, err }, 'what happened')`. Keys and values of users are never logged; lease ids
 * are. No request is logged at `info` or above.
 */
export type Logger = Pick<PinoLogger, 'debug' | 'info' | 'warn' | 'error' | 'isLevelEnabled'>;

/**
 * One JSON line per event, written to `stream` (stderr, so that stdout has only lines for the user) before the call
 * returns.
 */
export function createLogger(
  config: Pick<ServerConfig, 'name' | 'logLevel'>,
  stream: { write(line: string): unknown },
): Logger {
  return pino(
    {
      level: config.logLevel,
      base: { name: config.name, pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line) => void stream.write(line) },
  );
}
