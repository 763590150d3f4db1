import { rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { initializeTestData, PostgresCluster, postgresUser } from '@tenure/test-support';

const sharedSettings = { max_connections: '400', shared_buffers: '64MB' };

/**
 * The databases that the test files of a run share, each started on first use. They are children of the main process of
 * the run and end with it.
 */
export class TestDatabases {
  readonly #http: Server;
  #template: Promise<string> | undefined;
  #postgres: Promise<PostgresCluster> | undefined;

  private constructor() {
    this.#http = createServer((request, response) => {
      this.#answer(request.url ?? '').then(
        (text) => response.end(text),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
    });
  }

  static async start(): Promise<TestDatabases> {
    const databases = new TestDatabases();
    await new Promise<void>((resolve) => databases.#http.listen(0, '127.0.0.1', resolve));
    databases.#http.unref();
    return databases;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#http.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#http.close();
    await (await this.#postgres)?.dispose();
    const template = await this.#template;
    if (template !== undefined) rmSync(template, { recursive: true, force: true });
  }

  async #answer(path: string): Promise<string> {
    if (path === '/postgres-template') return join(await (this.#template ??= makeTemplate()), 'data');
    if (path === '/postgres') return (await (this.#postgres ??= PostgresCluster.create(sharedSettings))).url();
    throw new Error(`no database is called ${path}`);
  }
}

async function makeTemplate(): Promise<string> {
  const folder = postgresUser.folder();
  await initializeTestData(join(folder, 'data'));
  return folder;
}
