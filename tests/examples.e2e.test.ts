import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { hasPostgres, PostgresDatabase, ServeProcess } from '@tenure/test-support';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const folder = join(import.meta.dirname, '../examples');
/** An example ends by itself within seconds; this limit is for a busy machine. */
const limitMs = 50_000;

/** The lines that the built example prints. Rejects when it fails. */
async function run(example: string, env: Readonly<Record<string, string>> = {}, ...args: string[]): Promise<string[]> {
  const { PATH = '' } = process.env;
  const script = join(folder, 'dist', `${example}.js`);
  const { stdout } = await promisify(execFile)(process.execPath, [script, ...args], {
    env: { PATH, ...env },
    timeout: limitMs,
  });
  return stdout.trimEnd().split('\n');
}

/** The examples that are run below, each in its own test; `leader-health` is part of two of them. */
const tested = new Set(['leader-health']);

function example(name: string, check: () => Promise<void>): void {
  tested.add(name);
  test(`${name} prints the expected lines`, async () => {
    await check();
  });
}

describe.concurrent('examples without a database or server', () => {
  example('tour', async () => {
    expect(await run('tour')).toEqual([
      'reconciled with token 1n',
      'pod-7 has it, and no other task',
      'the same hold: true',
      'held by pod-7',
      'gave up after 20 ms',
      'a writer beside 2 readers: null',
      'a third beside 2 permits: null',
      'ingest is not ours any more',
      'lost: ingest revoked',
      'LeaseLostError: the lease "ingest" was lost: its entry was removed',
      'held: false and aborted: true since it was revoked',
    ]);
  });

  example('sharded-workers', async () => {
    expect(await run('sharded-workers')).toEqual([
      'shared out over 3 workers',
      'only those of worker-3 moved: true',
      'all are taken care of by worker-1 and worker-2',
    ]);
  });

  for (const framework of ['express', 'fastify']) {
    example(`${framework}-health`, async () => {
      expect(await run(`${framework}-health`)).toEqual([
        'standing by: 200 503',
        'leading: 200 200',
        'resigned: 200 503',
      ]);
    });
  }

  example('node-cron', async () => {
    expect(await run('node-cron')).toEqual(['no time was served twice: true']);
  });
});

describe.skipIf(!hasPostgres())('examples on PostgreSQL', { concurrent: true }, () => {
  let database: PostgresDatabase;
  let env: { readonly DATABASE_URL: string };

  beforeAll(async () => {
    database = await PostgresDatabase.create();
    env = { DATABASE_URL: database.url() };
  });
  afterAll(() => database.dispose());

  example('nightly-job', async () => {
    const replicas = ['replica-1', 'replica-2', 'replica-3'];
    const lines = (await Promise.all(replicas.map((replica) => run('nightly-job', env, replica)))).flat();
    const [report, ...others] = await database.query('SELECT made_by FROM reports');
    expect(others).toEqual([]);
    const winner = String(report?.['made_by']);
    const left = replicas.filter((replica) => replica !== winner).map((replica) => `${replica}: left to ${winner}`);
    expect(lines.toSorted()).toEqual([...left, `${winner}: made the report`].toSorted());
  });

  example('guarded-writes', async () => {
    const refused = 'LeaseLostError: the lease "job-1" was lost: another holder has it now';
    expect(await run('guarded-writes', env)).toEqual([
      'the first woke up, and knows when it looks: true',
      `its row: ${refused}`,
      `its entry: ${refused}`,
      "[ { state: 'ended by the second' } ] [ { entry: 'of the second' } ]",
    ]);
  });
});

describe.concurrent("examples on Tenure's server", () => {
  let server: ServeProcess;
  let data: string;
  let env: { readonly ENDPOINT: string };

  beforeAll(async () => {
    data = mkdtempSync(join(tmpdir(), 'tenure-examples-'));
    const engine = ['--engine', 'file', '--data-dir', data];
    server = new ServeProcess(['serve', ...engine, '--listen-client-urls', 'http://127.0.0.1:0']);
    const [url = ''] = await server.ready();
    env = { ENDPOINT: new URL(url).host };
  });
  afterAll(async () => {
    await server.end();
    rmSync(data, { recursive: true, force: true });
  });

  example('service-registry', async () => {
    expect(await run('service-registry', env)).toEqual([
      'there are: checkout-1 at http://10.0.0.1:8080, checkout-2 at http://10.0.0.2:8080',
      'there are: checkout-2 at http://10.0.0.2:8080',
      'went away: checkout-1',
      'there are: ',
      'went away: checkout-2',
    ]);
  });

  example('guarded-keys', async () => {
    expect(await run('guarded-keys', env)).toEqual([
      'the first woke up, and knows when it looks: true',
      'its key: LeaseLostError: the lease "job-1" was lost: another holder has it now',
      'ended by the second',
    ]);
  });

  example('leader-with-fencing', async () => {
    expect(await run('leader-with-fencing', env)).toEqual([
      'term 1: published',
      'term 1: told to stop: true',
      'term 1: LeaseLostError: the lease "publisher" was lost: another holder has it now',
      'term 2: published',
      'resigned and the token has grown: true',
      'the configuration is of term 2',
    ]);
  });
});

test('every example is run by a test', () => {
  const files = readdirSync(folder).filter((name) => name.endsWith('.ts'));
  expect(files.map((name) => name.replace(/\.ts$/, ''))).toEqual([...tested].toSorted());
});
