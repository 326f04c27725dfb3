import type { LoadingPolicyProvider } from '../../../src/config/policy-provider.js';
import type { Settings } from '../../../src/server/settings/settings-table.js';
import { LogOutput } from '../../../src/telemetry/log-output.js';
import { createLogger, type Logger } from '../../../src/telemetry/logger.js';
import { settingsOf } from '../weir/settings.js';
import { parseLog } from '../weir/weir.js';

/**
 * Opens the policies of a server with the given settings in this process, by the function that the server calls.
 * `limitOf` returns the requests per unit, or the tokens, that a domain allows each value of a key. Close the provider
 * after use.
 */
export async function openPoliciesOf<P extends LoadingPolicyProvider>(
  env: NodeJS.ProcessEnv,
  open: (settings: Settings, log: Logger, stopping: AbortSignal) => Promise<P>,
  stopping = new AbortController().signal,
) {
  const settings = settingsOf(env);
  let text = '';
  const write = (bytes: Uint8Array): number => {
    text += Buffer.from(bytes).toString();
    return bytes.length;
  };
  const log = createLogger({ level: 'info', format: 'json', colour: false }, new LogOutput({ write }));
  const provider = await open(settings, log, stopping);
  return {
    provider,
    log: () => parseLog(text.trim().split('\n')),
    limitOf(domain: string, key = 'k'): number | undefined {
      const { rate } =
        provider
          .current()
          ?.domains.get(domain)
          ?.match([{ key, value: 'v' }]).rules[0] ?? {};
      return rate?.reportedLimit;
    },
  };
}
