/* Tests a process that is stopped while it loads its first policies. */
import { expect, test } from '@jest/globals';
import { openPolicies } from '../../src/server/policies/open-policies.js';
import { StartStopped } from '../../src/server/start-error.js';
import { createLogger } from '../../src/telemetry/logger.js';
import { settingsOf } from '../support/weir/settings.js';

test('stops loading policies', async () => {
  const settings = settingsOf({});
  const log = createLogger({ level: 'panic', format: 'json', colour: false });
  const stopping = new AbortController();
  const opened = openPolicies(settings, log, stopping.signal);
  stopping.abort();
  await expect(opened).rejects.toBeInstanceOf(StartStopped);
});
