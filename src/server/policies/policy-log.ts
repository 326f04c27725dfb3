import type { NewSecret } from '../../config/read/secret-keys.js';
import type { Logger } from '../../telemetry/logger.js';

/** Most keys, and domains of each, that are logged. */
const MAX_SHOWN = 20;

/** Says which buckets begin anew, as their names hold what a domain takes for a secret since this reload. */
export function logNewSecrets(log: Logger, secrets: readonly NewSecret[]): void {
  for (const { key, domains } of secrets.slice(0, MAX_SHOWN)) {
    log.warn(
      { key, domains: domains.slice(0, MAX_SHOWN) },
      'the key is a secret of another domain now; buckets of these domains that are named by its values begin anew, under digests',
    );
  }
}
