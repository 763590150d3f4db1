import { EtcdProcess, hasEtcd } from '@tenure/test-support';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { SharedLogEngine } from '../log-engine.ts';
import { engineConformance } from '../testing/engine-conformance.ts';
import { seedCases } from '../testing/seed-cases.ts';
import { openEtcdEngine } from './etcd-engine.ts';

describe.skipIf(!hasEtcd())('the etcd engine', () => {
  let etcd: EtcdProcess;
  let logs = 0;

  beforeAll(async () => {
    etcd = await EtcdProcess.start();
  });

  afterAll(() => etcd.dispose());

  for (const { name, run } of [...engineConformance({ isDurable: true }), ...seedCases]) {
    test(name, async () => {
      const prefix = `/log-${++logs}`;
      let engine: SharedLogEngine | undefined;
      const dispose = async (): Promise<void> => engine?.close();
      const open = async (): Promise<SharedLogEngine> =>
        (engine = await openEtcdEngine({ endpoints: [etcd.endpoint], prefix }));
      await run({ open, dispose }).finally(dispose);
    });
  }
});
