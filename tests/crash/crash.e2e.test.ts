import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { CrashRun } from './crash-run.ts';

const seed = inject('seed');
const kills = 6;

test(
  `loses nothing that was acknowledged in ${kills} kills under load (TENURE_TEST_SEED=${seed})`,
  { timeout: 180_000 },
  async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'tenure-crash-'));
    try {
      const report = await new CrashRun({ seed, kills, dataDir, snapshotCount: 60, abandonedTtlMs: 400 }).run();
      expect(report.acknowledgedWrites).toBeGreaterThan(100);
      expect(report.abandonedEnded).toBeGreaterThan(0);
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  },
);
