import { describe, expect, test } from 'vitest';
import { parsePostgresAddress } from './postgres-address.ts';

describe('the address of a PostgreSQL engine', () => {
  test('names one host, with defaults for omitted parts', () => {
    const { hosts, database } = parsePostgresAddress('postgres://lease@db.example/tenure');
    expect(hosts).toEqual([{ name: 'db.example:5432', url: 'postgres://lease@db.example:5432/tenure' }]);
    expect(database).toBe('tenure');
    expect(parsePostgresAddress('postgresql://').hosts[0]?.name).toBe('localhost:5432');
  });

  test('names several hosts, each with the same user, password, database and options', () => {
    const url = 'postgres://u:p%40ss@one:5433,two,[::1]:5434/db?target_session_attrs=read-write&sslmode=verify-full';
    const { hosts } = parsePostgresAddress(url);
    expect(hosts).toEqual([
      { name: 'one:5433', url: 'postgres://u:p%40ss@one:5433/db?sslmode=verify-full' },
      { name: 'two:5432', url: 'postgres://u:p%40ss@two:5432/db?sslmode=verify-full' },
      { name: '::1:5434', url: 'postgres://u:p%40ss@[::1]:5434/db?sslmode=verify-full' },
    ]);
  });

  test('accepts hosts and ports as options too, which sockets require', () => {
    const { hosts } = parsePostgresAddress('postgres:///db?host=/run/postgresql,far&port=5433,5434');
    expect(hosts.map(({ name }) => name)).toEqual(['/run/postgresql:5433', 'far:5434']);
    expect(hosts[0]?.url ?? '').toMatch(/^postgres:\/\/localhost:5433\/db\?host=%2Frun%2Fpostgresql$/);
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
      const refusal = { name: 'EngineError', code: 'unusable', message: expect.stringMatching(message) };
      const parse = (): unknown => parsePostgresAddress(url);
      expect(parse).toThrow(expect.objectContaining(refusal));
      expect(parse).toThrow(expect.objectContaining({ message: expect.not.stringContaining('secret') }));
    });
  }
});
