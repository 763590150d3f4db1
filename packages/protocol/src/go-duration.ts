const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};

const duration = /^(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h))+$/;
const part = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)/g;

/**
 * Milliseconds of a duration in the notation of Go and of etcd's flags: '300ms', '1.5h', '2h45m', and '0' alone.
 * Undefined for any other text, or a negative duration. The result may have a fraction ('1us').
 */
export function parseGoDurationMs(text: string): number | undefined {
  if (text === '0') return 0;
  if (!duration.test(text)) return undefined;
  let sumMs = 0;
  for (const [, amount, unit] of text.matchAll(part)) sumMs += Number(amount) * (unitMs[unit ?? ''] ?? NaN);
  return sumMs;
}
