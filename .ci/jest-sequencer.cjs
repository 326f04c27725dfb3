// The order of test files. In a fresh clone, jest knows no durations and starts with the largest files, so a short file
// with a long test would start last, and run alone at the end.
const { default: TestSequencer } = require('@jest/test-sequencer');

/** Files that take half a minute or more although they are short. */
const FIRST = [
  'integration/alerts/alerts.test.js',
  'page/looks.test.js',
  'integration/deploy/dockerfile.test.js',
  'integration/release.test.js',
  'integration/bench.test.js',
  'integration/start-command.test.js',
  'e2e/walkthroughs.test.js',
];

const rankOf = ({ path }) => {
  const rank = FIRST.findIndex((name) => path.endsWith(`/${name}`));
  return rank === -1 ? FIRST.length : rank;
};

module.exports = class extends TestSequencer {
  sort(tests) {
    return super.sort(tests).sort((a, b) => rankOf(a) - rankOf(b));
  }
};
module.exports.FIRST = FIRST;
