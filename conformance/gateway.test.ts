import { readFileSync, writeFileSync } from 'node:fs';
import { rpcMethods } from '@tenure/protocol';
import { freePort } from '@tenure/test-support';
import fc from 'fast-check';
import { describe, expect, inject, test } from 'vitest';
import { browserOptions, browserRequests, foreignRequests } from './gateway/browser-requests.ts';
import { drawnRequest } from './gateway/drawn-requests.ts';
import { answerOf, type GatewayExchange, type GatewayRequest } from './gateway/exchange.ts';
import { knownRequests, malformedFor } from './gateway/known-requests.ts';
import { etcdVersion, startEtcd } from './servers/etcd-server.ts';
import type { RunningServer } from './servers/server-options.ts';
import { startTenure } from './servers/tenure-server.ts';

const recordedVersion = '3.6';
const recording = new URL('recordings/etcd-3.6.16/gateway.json', import.meta.url);
const browserRecording = new URL('recordings/etcd-3.6.16/browser-access.json', import.meta.url);
const isRecording = process.env['TENURE_TEST_RECORD'] !== undefined;
const version = etcdVersion();
const isRecordedEtcd = version?.startsWith(`${recordedVersion}.`) === true;
const isCi = process.env['CI'] === 'true';
/** Of the drawn requests in the recording. */
const recordedSeed = 20_263;
const recordedCount = 300;

function recorded(file = recording): readonly GatewayExchange[] {
  return JSON.parse(readFileSync(file, 'utf8')) as readonly GatewayExchange[];
}

/** One after the other, on a server of their own. */
async function exchangesOn(
  starting: Promise<RunningServer>,
  requests: readonly GatewayRequest[],
): Promise<readonly GatewayExchange[]> {
  const server = await starting;
  try {
    const exchanges: GatewayExchange[] = [];
    for (const request of requests) exchanges.push({ request, answer: await answerOf(server.address, request) });
    return exchanges;
  } finally {
    await server.stop();
  }
}

/** The paths of etcd's gateway, with the methods behind them, as its description has them. */
async function gatewayPaths(): Promise<readonly (readonly [string, string])[]> {
  const server = await startTenure();
  try {
    const response = await fetch(`http://${server.address}/openapi.json`);
    const { paths } = (await response.json()) as { paths: Record<string, { post: { operationId: string } }> };
    const methods = [...rpcMethods.values()];
    return Object.entries(paths).map(([path, { post }]) => {
      const [service, name] = post.operationId.split('_');
      const method = methods.find((each) => each.service.endsWith(`.${service}`) && each.name === name);
      return [path, method?.path ?? ''] as const;
    });
  } finally {
    await server.stop();
  }
}

// CI counts a skipped test as a failure. Its machines have another etcd, and the recording is there for that.
const testOrNot = isRecordedEtcd || !isCi ? test : (): void => undefined;
const skipReason = `the etcd here is ${version ?? 'missing'}: its gateway is not the one of ${recordedVersion}`;

describe('the JSON gateway', () => {
  testOrNot(`etcd ${recordedVersion} answers as recorded`, async ({ skip }) => {
    if (!isRecordedEtcd) skip(skipReason);
    if (isRecording) {
      const drawn = fc.sample(drawnRequest, { seed: recordedSeed, numRuns: recordedCount });
      const requests = [...knownRequests, ...malformedFor(await gatewayPaths()), ...drawn];
      const made = await exchangesOn(startEtcd({}, await freePort()), requests);
      writeFileSync(recording, `${JSON.stringify(made, null, 1)}\n`);
    }
    const exchanges = recorded();
    expect(
      await exchangesOn(
        startEtcd({}, await freePort()),
        exchanges.map(({ request }) => request),
      ),
    ).toEqual(exchanges);
  });

  test('Tenure answers as etcd does', async () => {
    const exchanges = recorded();
    expect(exchanges.length).toBeGreaterThan(recordedCount);
    expect(
      await exchangesOn(
        startTenure(),
        exchanges.map(({ request }) => request),
      ),
    ).toEqual(exchanges);
  });

  testOrNot('both answer what is drawn from the messages of the protocol in the same way', async ({ skip }) => {
    if (!isRecordedEtcd) skip(skipReason);
    const counts = { commit: 300, ci: 1500, soak: 20_000 };
    const requests = fc.sample(drawnRequest, { seed: inject('seed'), numRuns: counts[inject('effort')] });
    const expected = await exchangesOn(startEtcd({}, await freePort()), requests);
    expect(await exchangesOn(startTenure(), requests)).toEqual(expected);
  });
});

/** Each server has its own words for a host that is not in the list, and Tenure says that its health is JSON. */
function withoutWords({ request, answer }: GatewayExchange): GatewayExchange {
  const words = answer.status === 421 ? { body: 'refused' } : request.method === 'GET' ? { contentType: 'page' } : {};
  return { request, answer: { ...answer, ...words } };
}

describe('web pages, with --cors and --host-whitelist', () => {
  testOrNot(`etcd ${recordedVersion} answers as recorded, also to the pages of another origin`, async ({ skip }) => {
    if (!isRecordedEtcd) skip(skipReason);
    const requests = [...browserRequests, ...foreignRequests];
    const made = await exchangesOn(startEtcd(browserOptions, await freePort()), requests);
    if (isRecording) writeFileSync(browserRecording, `${JSON.stringify(made, null, 1)}\n`);
    expect(made).toEqual(recorded(browserRecording));
  });

  test('Tenure answers as etcd does where no page of another origin calls', async () => {
    const exchanges = recorded(browserRecording).slice(0, browserRequests.length);
    expect(exchanges.map(({ request }) => request)).toEqual(browserRequests);
    const made = await exchangesOn(startTenure(browserOptions), browserRequests);
    expect(made.map(withoutWords)).toEqual(exchanges.map(withoutWords));
  });

  test('Tenure refuses what etcd does for the pages of another origin', async () => {
    const served = recorded(browserRecording).slice(browserRequests.length);
    expect(served.map(({ answer }) => answer.status)).toEqual(
      foreignRequests.map(({ body }) => (body === 'x' ? 400 : 200)),
    );
    // A preflight, among the others above, is answered without the headers that would let the page go on.
    for (const { answer } of await exchangesOn(startTenure(browserOptions), foreignRequests)) {
      expect(answer).toMatchObject({ status: 403 });
      expect(answer.access).toBeUndefined();
    }
  });
});
