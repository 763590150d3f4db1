import { parseGoDurationMs } from '@tenure/protocol';
import { CliError } from './cli-error.ts';

/**
 * Whole milliseconds of '500ms', '30s', '1h30m', or of a plain number of seconds. Throws CliError `usage`, which
 * names `what`.
 */
export function parseDurationMs(what: string, text: string): number {
  if (/^\d{1,12}$/.test(text)) return Number(text) * 1000;
  const ms = parseGoDurationMs(text);
  if (ms === undefined || !Number.isSafeInteger(ms)) {
    throw new CliError(
      'usage',
      `${what} ${JSON.stringify(text)} must be seconds, such as 60, or a duration, such as 500ms`,
    );
  }
  return ms;
}

/** '60s', or '1500ms' where seconds are not enough. */
export function formatDuration(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}
