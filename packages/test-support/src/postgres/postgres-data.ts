import { postgresProgram, postgresUser } from './postgres-programs.ts';

/** The address at which a run of the tests tells where its databases are, in the environment of its processes. */
export const testDatabasesVariable = 'TENURE_TEST_DATABASES';

/** Makes the data of a server anew, with the defaults of PostgreSQL where `more` says nothing else. */
export async function initializeData(folder: string, ...more: readonly string[]): Promise<void> {
  const user = `--username=${postgresUser.name}`;
  await postgresUser.run(postgresProgram('initdb'), '--auth=trust', user, ...more, '-D', folder);
}

/** Data that is made fast and promises no more than tests need. */
export function initializeTestData(folder: string): Promise<void> {
  return initializeData(folder, '--no-sync', '--wal-segsize=1');
}

/** Makes the data of a server: by a copy where the run of the tests keeps some, which takes a tenth of the time. */
export async function makeData(folder: string): Promise<void> {
  const template = await testDatabase('/postgres-template');
  if (template === undefined) await initializeTestData(folder);
  else await postgresUser.run('cp', '-a', template, folder);
}

/** What the run of the tests answers about its databases; undefined outside of a run. */
export async function testDatabase(path: string): Promise<string | undefined> {
  const address = process.env[testDatabasesVariable];
  if (address === undefined) return undefined;
  const reply = await fetch(`${address}${path}`);
  const text = await reply.text();
  if (!reply.ok) throw new Error(text);
  return text;
}
