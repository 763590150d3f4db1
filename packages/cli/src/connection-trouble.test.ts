import { expect, test } from 'vitest';
import { connectionTrouble } from './connection-trouble.ts';

test.each([
  ['No connection established. Last error: Error: connect ECONNREFUSED', 'connect ECONNREFUSED'],
  ['No connection established. Last error: Error: self-signed\n more. Resolution note: ', 'self-signed'],
  ['Failed to connect (2026-11-21T23:45:40.316Z)', 'Failed to connect'],
  ['Name resolution failed for target dns:a:1', 'Name resolution failed for target dns:a:1'],
  [
    'No connection established. Last error: 80AC:error:0A00010B:SSL routines:get_record:wrong version number:x.c:1:\n',
    'it does not speak TLS: leave out https:// and the flags for TLS',
  ],
])('%j in words', (details, words) => expect(connectionTrouble(details)).toBe(words));
