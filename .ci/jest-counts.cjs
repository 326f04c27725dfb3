// A jest reporter that writes the counts of a run to the file named by WEIR_TEST_COUNTS, for .ci/test.mjs to add up.
const { writeFileSync } = require('node:fs');

module.exports = class JestCounts {
  onRunComplete(_contexts, results) {
    const file = process.env.WEIR_TEST_COUNTS;
    if (file === undefined) return;
    const left = results.testResults.flatMap((suite) =>
      suite.testResults.filter((test) => test.status !== 'passed' && test.status !== 'failed'),
    );
    const counts = {
      passed: results.numPassedTests,
      // A file that could not even be loaded has no failed test of its own.
      failed: results.numFailedTests + results.numRuntimeErrorTestSuites,
      left: left.map((test) => test.fullName),
    };
    writeFileSync(file, JSON.stringify(counts));
  }
};
