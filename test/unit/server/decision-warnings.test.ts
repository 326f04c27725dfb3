import { expect, test } from '@jest/globals';
import { LoggedWarnings, UnmatchedWarnings } from '../../../src/server/decision-warnings.js';
import { LogOutput } from '../../../src/telemetry/log-output.js';
import { createLogger } from '../../../src/telemetry/logger.js';

test('requests that can never pass are reported once for each rule, except for limits of 0', () => {
  let nowMs = 0;
  let text = '';
  const write = (bytes: Uint8Array): number => {
    text += Buffer.from(bytes).toString();
    return bytes.length;
  };
  const log = createLogger({ level: 'info', format: 'json', colour: false }, new LogOutput({ write }));
  const unlimited = new UnmatchedWarnings(log, () => undefined);
  const warnings = new LoggedWarnings(log, unlimited, () => nowMs);
  const [first, second, third] = [{}, {}, {}];
  for (let i = 0; i < 3; i++) {
    warnings.neverPasses('d', 'none', 1, 0, third);
    warnings.neverPasses('d', 'tenant', 11, 10, first);
    warnings.neverPasses('d', 'x'.repeat(1000), 6, 5, second);
    nowMs += 10_000;
  }
  // A reload creates new objects for the same rules.
  warnings.neverPasses('d', 'tenant', 12, 10, {});
  nowMs += 10_000;
  const lines = text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
  expect(lines).toMatchObject([
    {
      level: 'warning',
      '@message': expect.stringContaining('a request has more hits than this limit can ever allow'),
      domain: 'd',
      rule: 'tenant',
      hits: 11,
      limit: 10,
    },
    { rule: expect.stringMatching(/^x{256}…/), hits: 6, limit: 5 },
  ]);
});
