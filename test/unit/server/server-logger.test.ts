import { describe, expect, test } from '@jest/globals';
import { checkInvariant } from '../../../src/runtime/invariant.js';
import { logBrokenInvariants } from '../../../src/server/server-logger.js';
import type { Logger } from '../../../src/telemetry/logger.js';
import type { Metrics } from '../../../src/telemetry/metrics.js';

describe('tellBrokenInvariants', () => {
  test('counts every broken invariant, logs the first, and continues', () => {
    const logged: unknown[] = [];
    let counted = 0;
    const log = { error: (fields: { err: Error }) => logged.push(fields.err.message) };
    const metrics = { brokenInvariant: () => counted++ };
    const end = logBrokenInvariants(log as unknown as Logger, metrics as unknown as Metrics);
    for (let broken = 0; broken < 3; broken++) checkInvariant(false, 'this holds');
    end();
    expect(logged).toEqual(['this holds']);
    expect(counted).toBe(3);
    expect(() => checkInvariant(false, 'nobody listens')).toThrow('nobody listens');
  });
});
