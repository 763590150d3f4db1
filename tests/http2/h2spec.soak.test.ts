import { execFile, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isInstalled, ServeProcess, withTemporaryFolder } from '@tenure/test-support';
import { describe, expect, test } from 'vitest';

/** Go where it installs itself, or on the path. */
const go = existsSync('/usr/local/go/bin/go') ? '/usr/local/go/bin/go' : 'go';
const hasGo = isInstalled(spawnSync(go, ['version'], { stdio: 'ignore' }).status === 0, 'golang-go');
const buildTimeoutMs = 300_000;
const runTimeoutMs = 120_000;

/** What h2spec counts as a failure of every server with these properties, and is none. */
const known: Readonly<Record<string, readonly string[]>> = {
  https: [
    // It fills all streams that are offered with requests whose bodies have no window. Beyond 100 waiting requests of a
    // connection, /health answers 503 without a body: no stream stays open, and the limit is not exceeded.
    'Sends HEADERS frames that causes their advertised concurrent stream limit to be exceeded',
  ],
  http: [
    'Sends HEADERS frames that causes their advertised concurrent stream limit to be exceeded',
    // The port serves HTTP/1.1 too, which answers what is no preface with 400, and closes.
    'Sends invalid connection preface',
  ],
};

function run(program: string, args: readonly string[], timeoutMs: number, env = process.env): Promise<string> {
  return new Promise((resolve) => {
    execFile(program, args, { timeout: timeoutMs, env, maxBuffer: 1 << 26 }, (error, out, err) => {
      resolve(`${out}${err}${error === null ? '' : error.message}`);
    });
  });
}

/** Its newest release with a version of Go's kind, from the module proxy. */
async function buildH2spec(folder: string): Promise<string> {
  const env = { ...process.env, GOBIN: folder };
  const output = await run(
    go,
    ['install', 'github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible'],
    buildTimeoutMs,
    env,
  );
  const program = join(folder, 'h2spec');
  if (!existsSync(program)) throw new Error(`h2spec has not been built: ${output}`);
  return program;
}

interface Report {
  readonly tests: number;
  readonly failures: readonly string[];
  readonly text: string;
}

async function judge(h2spec: string, folder: string, url: URL): Promise<Report> {
  const file = join(folder, 'report.xml');
  const secure = url.protocol === 'https:' ? ['--tls', '--insecure'] : [];
  const args = ['--host', url.hostname, '--port', url.port, '--path', '/health', '--strict', '--junit-report', file];
  const text = await run(h2spec, [...args, ...secure], runTimeoutMs);
  const cases = readFileSync(file, 'utf8').split('<testcase ').slice(1);
  const nameOf = (each: string): string => /classname="([^"]*)"/.exec(each)?.[1] ?? each;
  const failed = cases.filter((each) => /<failure|<error/.test(each.slice(0, each.indexOf('</testcase>'))));
  return { tests: cases.length, failures: failed.map(nameOf), text };
}

describe.runIf(hasGo)('h2spec, strict', { timeout: buildTimeoutMs + 2 * runTimeoutMs }, () => {
  test('finds no fault in the generic, the HTTP/2 and the HPACK sections, without and with TLS', async () => {
    await withTemporaryFolder(async (folder) => {
      const h2spec = await buildH2spec(folder);
      for (const [scheme, allowed] of Object.entries(known)) {
        const data = join(folder, scheme);
        const tls = scheme === 'https' ? ['--auto-tls'] : [];
        const listen = [`--listen-client-urls=${scheme}://127.0.0.1:0`, `--data-dir=${data}`];
        const server = new ServeProcess(['serve', '--engine=file', ...listen, ...tls]);
        try {
          const [url = ''] = await server.ready();
          const { tests, failures, text } = await judge(h2spec, folder, new URL(url));
          expect(tests, text).toBe(146);
          expect(
            failures.filter((failure) => !allowed.includes(failure)),
            text,
          ).toEqual([]);
        } finally {
          await server.end();
        }
      }
    });
  });
});
