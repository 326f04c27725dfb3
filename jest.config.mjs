// The tiers of docs/internals/testing.md. Jest runs what `npm run build` has compiled.
const TIERS = [
  'unit',
  'property',
  'contract',
  'integration',
  'conformance',
  'e2e',
  'page',
  'memory',
  'chaos',
  'stall',
];

const tier = (name) => ({
  displayName: name,
  rootDir: '.',
  roots: ['<rootDir>/build/test'],
  testMatch: [`<rootDir>/build/test/${name}/**/*.test.js`],
  transform: {},
  testEnvironment: 'node',
  modulePathIgnorePatterns: ['<rootDir>/build/package.json'],
});

export default {
  projects: TIERS.map(tier),
  coverageProvider: 'v8',
  testTimeout: 30_000,
};
