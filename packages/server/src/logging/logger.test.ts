import { expect, test } from 'vitest';
import { createLogger } from './logger.ts';

test('one JSON line an event, with its level by name, from the chosen level up', () => {
  const lines: string[] = [];
  const log = createLogger({ name: 'n1', logLevel: 'warn' }, { write: (line) => lines.push(line) });
  log.info('quiet');
  log.warn({ lease: '1a', err: new Error('disk') }, 'something');
  expect(lines).toHaveLength(1);
  const event = JSON.parse(lines[0] ?? '') as Record<string, unknown>;
  expect(event).toMatchObject({ level: 'warn', name: 'n1', lease: '1a', msg: 'something', err: { message: 'disk' } });
  expect(new Date(String(event['time'])).getTime()).toBeLessThanOrEqual(Date.now());
});
