import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { CrashRun } from './crash-run.ts';

const seed = inject('seed');
const kills = { commit: 15, ci: 15, soak: 60 }[inject('effort')];

test(
  `loses nothing that was acknowledged in ${kills} kills under load (TENURE_TEST_SEED=${seed})`,
  { timeout: 600_000 },
  async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'tenure-crash-'));
    try {
      const report = await new CrashRun({ seed, kills, dataDir, snapshotCount: 60, abandonedTtlMs: 1_500 }).run();
      expect(report.acknowledgedWrites).toBeGreaterThan(15 * kills);
      expect(report.abandonedEnded).toBeGreaterThan(0);
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  },
);
