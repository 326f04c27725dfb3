/** Where .ci/jest.mjs wants to read what became of each test; unset in a run by hand. */
const counts = process.env.WEIR_TEST_COUNTS;
await import('./.ci/test-environment.cjs');

// The tiers of docs/internals/testing.md. Jest runs what `npm run build` has compiled.
const TIERS = [
  'unit',
  'property',
  'contract',
  'integration',
  'conformance',
  'e2e',
  'page',
  'chaos',
  'attack',
];

const tier = (name) => ({
  displayName: name,
  rootDir: '.',
  roots: ['<rootDir>/build/test'],
  testMatch: [`<rootDir>/build/test/${name}/**/*.test.js`],
  transform: {},
  testEnvironment: '<rootDir>/.ci/test-environment.cjs',
  modulePathIgnorePatterns: ['<rootDir>/build/package.json'],
  // A mock of a test that failed must not change the next test.
  restoreMocks: true,
});

export default {
  projects: TIERS.map(tier),
  ...(counts !== undefined && { reporters: ['default', ['<rootDir>/.ci/jest-reporter.cjs', { counts }]] }),
  testSequencer: '<rootDir>/.ci/jest-sequencer.cjs',
  coverageProvider: 'v8',
  // A failure of a wait names its condition, so this limit is only for tests that hang. Waits end at 60 s.
  testTimeout: 150_000,
};
