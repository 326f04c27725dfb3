import { DEFAULT_LIMITS, type H2Limits } from '../../../src/h2/limits.js';

/** Limits of a connection for tests that do not test them. */
export const TEST_LIMITS: H2Limits = {
  ...DEFAULT_LIMITS,
  maxConcurrentStreams: 1024,
  maxHeaderListBytes: 16_384,
};
