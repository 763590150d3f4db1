import { ServeProcess } from '@tenure/test-support';
import { expect } from 'vitest';

/** A failing start may wait for a database, but not forever. */
const patienceMs = 60_000;
/** A line of the server's log, or of Node about a library. */
const isWarning = /^\{"level":"?(warn|40)|DeprecationWarning|^\(Use `node --trace-deprecation/;

export interface Start {
  readonly engine: string;
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Starts a server that cannot start and returns its last output. Throws unless it has ended with code 1, by itself,
 * without having served, and with one line that begins with `Error: `, after the warnings if there were any.
 */
export async function refusedStart({ engine, flags = [], env = {} }: Start): Promise<string> {
  const address = ['--listen-client-urls', 'http://127.0.0.1:0'];
  const server = new ServeProcess(['serve', '--engine', engine, ...address, ...flags], env);
  const timer = setTimeout(() => server.signal('SIGKILL'), patienceMs);
  const { code, signal, out, err } = await server.ended;
  clearTimeout(timer);
  expect({ code, signal, out }, err).toEqual({ code: 1, signal: null, out: '' });
  const lines = err.trimEnd().split('\n');
  const last = lines.pop() ?? '';
  expect(last).toMatch(/^Error: \S/);
  for (const line of lines) expect(line).toMatch(isWarning);
  return last.slice('Error: '.length);
}
