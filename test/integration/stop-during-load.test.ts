/* Tests a process that is stopped while it loads its first policies. */
import { expect, test } from '@jest/globals';
import { openPolicies } from '../../src/server/policies/open-policies.js';
import { readSettings } from '../../src/server/settings/read-settings.js';
import { StartStopped } from '../../src/server/start-error.js';
import { createLogger } from '../../src/telemetry/logger.js';

test('stops loading policies', async () => {
  const read = readSettings({});
  if (!read.ok) throw new Error(read.errors.join());
  const log = createLogger({ level: 'panic', format: 'json', colour: false });
  const stopping = new AbortController();
  const opened = openPolicies(read.settings, log, stopping.signal);
  stopping.abort();
  await expect(opened).rejects.toBeInstanceOf(StartStopped);
});
