// The common part of the scripts that run tests: parts with their times, counts of tests, and the report at the end.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { runLimited, timeIsUpCode } from './limited-run.mjs';
import { programs, root } from './prepare.mjs';

const slowestShown = 20;
const reporters = ['--reporter=default', `--reporter=${join(root, 'scripts/test-reporter.mjs')}`, '--reporter=json'];

/** The parts of a run of tests, in the order in which they ended. */
export class TestRun {
  #parts = [];
  #files = [];

  get failed() {
    return this.#parts.reduce((sum, part) => sum + part.failed, 0);
  }

  /** A step that is not a test: it counts as one failure when it fails and as nothing otherwise. */
  async step(name, action) {
    const startedMs = performance.now();
    const code = await action();
    this.#add({ name, seconds: secondsSince(startedMs), failed: code === 0 ? 0 : 1 });
    return code === 0;
  }

  /**
   * Runs vitest and resolves with whether all tests passed: `args` are files, projects and flags, `limits` those of
   * `runLimited`, `output` receives the output instead of stdout. Undefined when the time was up: then the part does
   * not count.
   */
  async vitest({ name, args, env, output, ...limits }) {
    const folder = mkdtempSync(join(tmpdir(), 'tenure-test-'));
    const file = join(folder, 'report.json');
    const startedMs = performance.now();
    const all = [programs.vitest, 'run', ...reporters, `--outputFile.json=${file}`, ...args];
    // At SIGUSR2 the reporter prints the running files.
    const program = { command: process.execPath, args: all, env, output, lastSignal: 'SIGUSR2' };
    const code = await runLimited({ name, ...limits, ...program });
    const part = { name, seconds: secondsSince(startedMs), passed: 0, failed: 0, skipped: 0 };
    try {
      if (code === timeIsUpCode) return undefined;
      this.#count(part, JSON.parse(readFileSync(file, 'utf8')));
    } catch (error) {
      console.error(`${name} left no result: ${error.message}`);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    if (isChosenByName() && part.passed + part.failed === 0) {
      console.error(`no test has such a name: ${args.join(' ')}`);
      part.failed = 1;
    }
    // An error outside of any test (an unhandled rejection) fails the run and is in no count.
    if (code !== 0 && part.failed === 0) {
      console.error(`${name} ended with code ${code}`);
      part.failed = 1;
    }
    this.#add(part);
    return part.failed === 0;
  }

  /** Takes over the parts of a run in another process, which has written them to that file. */
  addSummary(name, file) {
    try {
      const { parts, files } = JSON.parse(readFileSync(file, 'utf8'));
      for (const part of parts) this.#parts.push({ ...part, name: `${name}: ${part.name}` });
      this.#files.push(...files);
    } catch (error) {
      console.error(`${name} left no summary: ${error.message}`);
      this.#parts.push({ name, seconds: 0, passed: 0, failed: 1, skipped: 0 });
    }
  }

  summary() {
    return { parts: this.#parts, files: this.#files };
  }

  /** The times, and on the last line the totals in exactly this form, which CI reads. */
  report() {
    console.log('\nParts, in seconds:');
    for (const { name, seconds, passed = 0, failed = 0 } of this.#parts) {
      const tests = passed + failed === 0 ? '' : `  ${passed} passed${failed === 0 ? '' : `, ${failed} FAILED`}`;
      console.log(`${seconds.toFixed(1).padStart(8)}  ${name}${tests}`);
    }
    const slowest = this.#files.toSorted((one, other) => other.seconds - one.seconds).slice(0, slowestShown);
    if (slowest.length > 1) console.log('\nThe slowest files, in seconds:');
    for (const { path, seconds } of slowest.length > 1 ? slowest : []) {
      console.log(`${seconds.toFixed(1).padStart(8)}  ${path}`);
    }
    const sum = (count) => this.#parts.reduce((total, part) => total + (part[count] ?? 0), 0);
    console.log(`\n${sum('passed')} passed, ${sum('failed')} failed, ${sum('skipped')} skipped`);
  }

  #add(part) {
    this.#parts.push(part);
    console.log(`${part.failed === 0 ? 'ok' : 'FAILED'}  ${part.name} (${part.seconds.toFixed(1)} s)`);
  }

  #count(part, report) {
    part.passed += report.numPassedTests;
    part.failed += report.numFailedTests;
    for (const file of report.testResults) {
      const path = relative(root, file.name);
      const tests = file.assertionResults;
      this.#files.push({ path, seconds: (file.endTime - file.startTime) / 1_000 });
      // A file that could not even be loaded has no tests to count.
      if (file.status === 'failed' && tests.every((test) => test.status !== 'failed')) part.failed += 1;
      const skipped = tests.filter(({ status }) => ['skipped', 'pending', 'todo', 'disabled'].includes(status));
      part.skipped += skipped.length;
      if (process.env.CI !== 'true' || isChosenByName()) continue;
      // CI installs every program that a test may need, so a skip there hides a fault and counts as a failure.
      for (const { fullName } of skipped) console.error(`skipped under CI: ${path} > ${fullName}`);
      part.failed += skipped.length;
    }
  }
}

/** With `-t` all other tests of a file are skipped, which is expected. */
function isChosenByName() {
  return process.argv.includes('-t');
}

function secondsSince(startedMs) {
  return (performance.now() - startedMs) / 1_000;
}
