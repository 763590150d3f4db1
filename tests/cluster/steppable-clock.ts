import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The path of libfaketime in Debian; undefined when it is not installed. */
function libraryPath(): string | undefined {
  const folders = readdirSync('/usr/lib', { withFileTypes: true }).filter((entry) => entry.isDirectory());
  const places = folders.map(({ name }) => `/usr/lib/${name}/faketime/libfaketimeMT.so.1`);
  return places.find((place) => existsSync(place));
}

/** Whether tests that step a clock can run. Prints why not, or fails where everything must be installed. */
export function hasFaketime(): boolean {
  if (libraryPath() !== undefined) return true;
  const message = 'libfaketime is not installed (Debian package faketime)';
  if (process.env['CI'] === 'true') throw new Error(message);
  console.log(`skipped: ${message}`);
  return false;
}

/** The wall clock of a server that is started with this environment. Its monotonic clock is not affected. */
export class SteppableClock {
  readonly #folder = mkdtempSync(join(tmpdir(), 'tenure-clock-'));

  constructor() {
    this.stepTo(0);
  }

  get env(): Readonly<Record<string, string>> {
    return {
      LD_PRELOAD: libraryPath() ?? '',
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  }

  /** From now on the clock is ahead of the true time by this much, or behind it if negative. */
  stepTo(aheadMs: number): void {
    writeFileSync(this.#file, `${aheadMs < 0 ? '-' : '+'}${Math.abs(aheadMs) / 1_000}\n`);
  }

  /** To be called when the server has ended: the library leaves a file of each process behind. */
  dispose(pid: number): void {
    rmSync(this.#folder, { recursive: true, force: true });
    for (const left of [`faketime_shm_${pid}`, `sem.faketime_sem_${pid}`]) {
      rmSync(join('/dev/shm', left), { force: true });
    }
  }

  get #file(): string {
    return join(this.#folder, 'offset');
  }
}
