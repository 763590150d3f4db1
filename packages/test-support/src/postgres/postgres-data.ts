import { postgresProgram, postgresUser } from './postgres-programs.ts';

/** The environment variable with the address at which a test run serves the locations of its databases. */
export const testDatabasesVariable = 'TENURE_TEST_DATABASES';

/** Creates the data of a server, with the defaults of PostgreSQL except for `more`. */
export async function initializeData(folder: string, ...more: readonly string[]): Promise<void> {
  const user = `--username=${postgresUser.name}`;
  await postgresUser.run(postgresProgram('initdb'), '--auth=trust', user, ...more, '-D', folder);
}

/** Settings that trade durability for speed, as tests allow. */
export function initializeTestData(folder: string): Promise<void> {
  return initializeData(folder, '--no-sync', '--wal-segsize=1');
}

/** Creates the data of a server: as a copy if the test run has a template, which takes a tenth of the time. */
export async function makeData(folder: string): Promise<void> {
  const template = await testDatabase('/postgres-template');
  if (template === undefined) await initializeTestData(folder);
  else await postgresUser.run('cp', '-a', template, folder);
}

/** The test run's response about its databases; undefined outside of a run. */
export async function testDatabase(path: string): Promise<string | undefined> {
  const address = process.env[testDatabasesVariable];
  if (address === undefined) return undefined;
  const reply = await fetch(`${address}${path}`);
  const text = await reply.text();
  if (!reply.ok) throw new Error(text);
  return text;
}
