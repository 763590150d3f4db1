import { CliError } from './cli-error.ts';

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/**
 * Whole milliseconds of '500ms', '30s', '1h30m', or of a plain number of seconds. Throws CliError `usage`, which
 * names `what`.
 */
export function parseDurationMs(what: string, text: string): number {
  if (/^\d{1,12}$/.test(text)) return Number(text) * 1000;
  let sumMs = 0;
  const isDuration = /^(?:\d{1,12}(?:\.\d{1,9})?(?:ms|s|m|h))+$/.test(text);
  for (const [, amount, unit] of text.matchAll(/([\d.]+)(ms|s|m|h)/g))
    sumMs += Number(amount) * (unitMs[unit ?? ''] ?? NaN);
  if (!isDuration || !Number.isInteger(sumMs)) {
    throw new CliError(
      'usage',
      `${what} ${JSON.stringify(text)} must be seconds, such as 60, or a duration, such as 500ms`,
    );
  }
  return sumMs;
}

/** '60s', or '1500ms' where seconds are not enough. */
export function formatDuration(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}
