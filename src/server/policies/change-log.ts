import type { PolicyProvider } from '../../config/policy-provider.js';
import { PolicyDiffer } from '../../config/threads/policy-task.js';
import type { Clock } from '../../limiter/clock.js';
import type { PolicySet } from '../../policy/compiled-policy.js';
import { quantity } from '../../runtime/texts.js';
import type { Logger } from '../../telemetry/logger.js';

/**
 * Logs what each reload changes, in the words of `weir diff`, with a bounded number of lines. If policies change during
 * a comparison, intermediate versions are skipped: each entry compares a version to the last logged one. Returns a
 * function that stops logging.
 */
export function logChanges(
  log: Logger,
  policies: PolicyProvider,
  clock: Pick<Clock, 'wallMicros'>,
  differ: Pick<PolicyDiffer, 'diff' | 'close'> = new PolicyDiffer(),
): () => void {
  let logged = policies.current();
  let isLogging = false;
  let closed = false;
  const logChange = async (before: PolicySet, now: PolicySet): Promise<void> => {
    const about = { before: before.version, policy: now.version };
    try {
      const { summary, lines, more } = await differ.diff(before, now, clock.wallMicros());
      const rest =
        more === 0
          ? ''
          : `; ${quantity(more, 'more change')} not listed (to see all changes, run weir diff <old> <new>)`;
      log.info(about, `changes in the new policy: ${summary}${rest}`);
      for (const { domain, text } of lines) log.info({ domain, policy: now.version }, text);
    } catch (error) {
      if (closed) return;
      const why = error instanceof Error ? error.message : String(error);
      log.warn(
        about,
        `the changes in the new policy could not be listed: ${why}; to see the changes, run weir diff <old> <new>`,
      );
    }
  };
  const logAll = async (): Promise<void> => {
    if (isLogging) return;
    isLogging = true;
    for (let now = policies.current(); now !== logged; now = policies.current()) {
      if (closed) return;
      const before = logged;
      logged = now;
      if (before !== undefined && now !== undefined) await logChange(before, now);
    }
    isLogging = false;
  };
  policies.onReload(() => void logAll());
  return () => {
    closed = true;
    differ.close();
  };
}
