// A jest reporter. Prints the progress of a run, and writes the result of each test to the file `counts` in its
// options, for .ci/jest.mjs.
const { writeFileSync } = require('node:fs');
const { relative, join } = require('node:path');

const SAY_EVERY_MS = 5000;
/** Number of the slowest files that are printed at the end. */
const SLOWEST = 10;
const BUILT_TESTS = join(__dirname, '../build/test');

const sourceOf = (path) => relative(BUILT_TESTS, path).replace(/\.js$/, '.ts');

module.exports = class JestReporter {
  #startedMs = performance.now();
  #saidMs = performance.now();
  #counts;

  constructor(_config, { counts }) {
    this.#counts = counts;
  }

  onTestFileResult(_file, _result, { numTotalTestSuites, numPassedTests, numFailedTests, testResults }) {
    const nowMs = performance.now();
    if (nowMs - this.#saidMs < SAY_EVERY_MS && testResults.length < numTotalTestSuites) return;
    this.#saidMs = nowMs;
    const seconds = Math.round((nowMs - this.#startedMs) / 1000);
    process.stderr.write(
      `weir: ${testResults.length} of ${numTotalTestSuites} test files, ${numPassedTests} passed, ` +
        `${numFailedTests} failed, ${seconds} s\n`,
    );
  }

  onRunComplete(_contexts, results) {
    const slowest = results.testResults
      .map(({ testFilePath, perfStats }) => ({
        name: sourceOf(testFilePath),
        ms: perfStats.end - perfStats.start,
      }))
      .sort((a, b) => b.ms - a.ms)
      .slice(0, SLOWEST)
      .map(({ name, ms }) => `${name} ${(ms / 1000).toFixed(1)} s`);
    process.stderr.write(`weir: the slowest files: ${slowest.join(', ')}\n`);
    const tests = results.testResults.flatMap((suite) =>
      suite.testResults.map(({ fullName, status }) => ({
        file: sourceOf(suite.testFilePath),
        name: fullName,
        status,
      })),
    );
    const counts = {
      passed: results.numPassedTests,
      // A file that failed to load has no failed tests.
      failed: results.numFailedTests + results.numRuntimeErrorTestSuites,
      tests,
    };
    writeFileSync(this.#counts, JSON.stringify(counts));
  }
};
