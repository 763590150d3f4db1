import { postgresProgram, postgresUser, runAsPostgres } from './postgres-programs.ts';

/** The address at which a run of the tests tells where its databases are, in the environment of its processes. */
export const testDatabasesVariable = 'TENURE_TEST_DATABASES';

/** Makes the data of a server anew. */
export async function initializeData(folder: string): Promise<void> {
  const fast = ['--no-sync', '--wal-segsize=1'];
  await runAsPostgres(postgresProgram('initdb'), ...fast, '--auth=trust', `--username=${postgresUser}`, '-D', folder);
}

/** Makes the data of a server: by a copy where the run of the tests keeps some, which takes a tenth of the time. */
export async function makeData(folder: string): Promise<void> {
  const template = await testDatabase('/postgres-template');
  if (template === undefined) await initializeData(folder);
  else await runAsPostgres('cp', '-a', template, folder);
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
