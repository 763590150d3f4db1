// A reporter for vitest that says at the end which tests were skipped and why: the default one leaves the reasons out.
export default class SkipReporter {
  #lines = [];

  onTestCaseResult(testCase) {
    const result = testCase.result();
    if (result.state !== 'skipped') return;
    this.#lines.push(
      `skipped: ${testCase.module.relativeModuleId} > ${testCase.fullName}: ${result.note ?? 'no reason'}`,
    );
  }

  onTestRunEnd() {
    for (const line of this.#lines) console.log(line);
  }
}
