import { describe, expect, test } from 'vitest';
import { startTenure } from '../../conformance/servers/tenure-server.ts';
import { etcdctlVersion, runEtcdctl } from './etcdctl.ts';

describe.skipIf(etcdctlVersion() === undefined)('etcdctl check perf', () => {
  test('judges Tenure, which has nothing left of it afterwards', { timeout: 180_000 }, async () => {
    const server = await startTenure();
    try {
      const flags = [`--endpoints=${server.address}`];
      const { out, err } = await runEtcdctl([...flags, 'check', 'perf', '--load=s', '--auto-compact']);
      // Whether a busy machine is fast enough is not asked here.
      const verdicts =
        /^Compacted with revision \d+\n(?:PASS: |FAIL: |Slowest )[^\n]*\n[^\n]+\n[^\n]+\n(?:PASS|FAIL)\n/m;
      expect(`${out}${err}`).toMatch(verdicts);
      expect((await runEtcdctl([...flags, 'get', '', '--prefix', '--keys-only'])).out).toBe('');
    } finally {
      await server.stop();
    }
  });
});
