import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { EngineError } from '../engine-error.ts';
import { parsePostgresAddress } from './postgres-address.ts';

describe('the address of a PostgreSQL engine', () => {
  test('names one host, with what is left out at its default', () => {
    const { hosts, database } = parsePostgresAddress('postgres://lease@db.example/tenure');
    assert.deepEqual(hosts, [{ name: 'db.example:5432', url: 'postgres://lease@db.example:5432/tenure' }]);
    assert.equal(database, 'tenure');
    assert.equal(parsePostgresAddress('postgresql://').hosts[0]?.name, 'localhost:5432');
  });

  test('names several hosts, each with the same user, password, database and options', () => {
    const url = 'postgres://u:p%40ss@one:5433,two,[::1]:5434/db?target_session_attrs=read-write&sslmode=verify-full';
    const { hosts } = parsePostgresAddress(url);
    assert.deepEqual(hosts, [
      { name: 'one:5433', url: 'postgres://u:p%40ss@one:5433/db?sslmode=verify-full' },
      { name: 'two:5432', url: 'postgres://u:p%40ss@two:5432/db?sslmode=verify-full' },
      { name: '::1:5434', url: 'postgres://u:p%40ss@[::1]:5434/db?sslmode=verify-full' },
    ]);
  });

  test('takes hosts and ports as options too, and a socket is only to be had so', () => {
    const { hosts } = parsePostgresAddress('postgres:///db?host=/run/postgresql,far&port=5433,5434');
    assert.deepEqual(
      hosts.map(({ name }) => name),
      ['/run/postgresql:5433', 'far:5434'],
    );
    assert.match(hosts[0]?.url ?? '', /^postgres:\/\/localhost:5433\/db\?host=%2Frun%2Fpostgresql$/);
  });

  const refused = {
    'mysql://u:secret@h/db': /form/,
    'u:secret@h/db': /form/,
    'postgres://u:secret@h/db?target_session_attrs=standby': /target_session_attrs=standby.*read-write/,
    'postgres://u:secret@h/db?sslmod=require': /no option 'sslmod'; for TLS/,
    'postgres://u:secret@h/db?sslmode=on': /sslmode='on' is none of .*verify-full/,
    'postgres://u:secret@h:port/db': /'h:port' is no host/,
    'postgres://u:secret@h:70000/db': /'70000' is no port/,
    'postgres://u:secret@a%zz/db': /%/,
  };
  for (const [url, message] of Object.entries(refused)) {
    test(`refuses ${url} without repeating its password`, () => {
      assert.throws(
        () => parsePostgresAddress(url),
        (error) => {
          assert.ok(error instanceof EngineError && error.code === 'unusable');
          assert.match(error.message, message);
          assert.doesNotMatch(error.message, /secret/);
          return true;
        },
      );
    });
  }
});
