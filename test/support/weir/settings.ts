import { systemClock } from '../../../src/limiter/clock.js';
import { readSettings } from '../../../src/server/settings/read-settings.js';
import type { Settings } from '../../../src/server/settings/settings-table.js';
import { openStore } from '../../../src/server/store/open-store.js';
import type { Store } from '../../../src/server/store/store.js';
import { createLogger } from '../../../src/telemetry/logger.js';
import { closeLater } from '../process/close-later.js';

/** Returns the settings of a server with these variables. Throws if a variable is invalid. */
export function settingsOf(environment: NodeJS.ProcessEnv): Settings {
  const read = readSettings(environment);
  if (!read.ok) throw new Error(read.errors.join('\n'));
  return read.settings;
}

/** Opens the store of a server with these variables in this process. By default, it logs nothing. */
export function openStoreOf(
  environment: NodeJS.ProcessEnv,
  log = createLogger({ level: 'panic', format: 'json', colour: false }),
): Store {
  return closeLater(openStore(settingsOf(environment), systemClock, log), (store) => store.close());
}
