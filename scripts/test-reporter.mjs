// A reporter for vitest that adds two things to the default one: the command that repeats each failure, and why tests
// were skipped. At SIGUSR2 it prints the running files, for a run that takes too long.
export default class TestReporter {
  #running = new Set();
  #skipped = [];
  #repeats = [];

  onInit() {
    process.on('SIGUSR2', () => console.error(`still running: ${[...this.#running].join(', ') || 'no test file'}`));
  }

  onTestModuleStart(module) {
    this.#running.add(module.relativeModuleId);
  }

  onTestModuleEnd(module) {
    this.#running.delete(module.relativeModuleId);
    if (module.state() === 'failed' && module.errors().length > 0) this.#repeats.push(repeatCommand(module));
  }

  onTestCaseResult(test) {
    const { state, note } = test.result();
    if (state === 'failed') this.#repeats.push(repeatCommand(test.module, test.fullName));
    // With `-t` all other tests are skipped, which is expected.
    if (state !== 'skipped' || process.argv.includes('-t')) return;
    this.#skipped.push(`skipped: ${test.module.relativeModuleId} > ${test.fullName}: ${note ?? 'no reason'}`);
  }

  onTestRunEnd() {
    for (const line of this.#skipped) console.log(line);
    if (this.#repeats.length > 0) console.log(`\nTo repeat what failed:\n  ${this.#repeats.join('\n  ')}\n`);
  }
}

/** The result of a test depends on the seed and the effort of its run, so both are part of the command. */
function repeatCommand(module, testName) {
  const variables = ['TENURE_TEST_SEED', 'TENURE_TEST_EFFORT'].flatMap((name) =>
    process.env[name] === undefined ? [] : [`${name}=${process.env[name]}`],
  );
  const pattern = testName?.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const name = pattern === undefined ? [] : ['-t', `'${pattern.replaceAll("'", `'\\''`)}'`];
  return [...variables, 'npm', 'test', '--', module.relativeModuleId, ...name].join(' ');
}
