import { StateMachine } from '@tenure/core';
import { responseHeaderPrefix } from '@tenure/protocol';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { MaintenanceService } from './maintenance-service.ts';
import { deferred } from './transport/testing/test-server.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

function createService() {
  const state = new StateMachine();
  const service = new MaintenanceService({
    replica: {
      state,
      position: { index: 0, hash: '' },
      propose: () => Promise.reject(new Error('nothing is proposed here')),
      linearize: () => undefined,
    },
    identity: { clusterId: 1n, memberId: 2n, headerPrefix: responseHeaderPrefix(1n, 2n) },
    rules: { refusal: () => undefined },
    quotaBytes: 0,
    leaderId: () => 0n,
    logIndex: () => 0,
    problem: () => undefined,
  });
  return { state, service };
}

describe('a snapshot for a client', () => {
  test('that finds no place on the disk leaves the state as it was: what is compacted is freed', async () => {
    const { state, service } = createService();
    vi.stubEnv('TMPDIR', '/there/is/no/such/folder');
    await expect(service.snapshot(() => Promise.resolve())).rejects.toThrow('ENOENT');
    const put = { key: 'a', value: '', lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false };
    const commands = [{ kind: 'put', put } as const, { kind: 'compact', revision: 2 } as const];
    state.apply({ index: 1, epoch: 0, timeMs: 0, commands });
    expect(state.isScrubPaused).toBe(false);
  });

  test('is refused when many are under way, and taken when one of these has ended', async () => {
    const { service } = createService();
    const reading = deferred();
    const underWay = Array.from({ length: 8 }, () => service.snapshot(() => reading.promise));
    await expect(service.snapshot(() => Promise.resolve())).rejects.toMatchObject({ code: 8 });
    reading.resolve();
    await Promise.all(underWay);
    const sent: Buffer[] = [];
    await service.snapshot(async (framed) => void sent.push(framed));
    expect(sent.length).toBeGreaterThan(0);
  });
});
