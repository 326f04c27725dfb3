import type { PolicyProvider } from '../../config/policy-provider.js';
import { PolicyDiffer } from '../../config/threads/policy-task.js';
import type { Clock } from '../../limiter/clock.js';
import type { PolicySet } from '../../policy/compiled-policy.js';
import { quantity } from '../../quantity.js';
import type { Logger } from '../../telemetry/logger.js';

/**
 * Logs what each reload changes, in the words of `weir diff`, with a bounded number of lines. If policies change during
 * a comparison, intermediate versions are skipped: each entry compares a version to the last logged one.
 */
export class ChangeLog {
  readonly #log: Logger;
  readonly #policies: PolicyProvider;
  readonly #clock: Pick<Clock, 'wallMicros'>;
  readonly #differ: Pick<PolicyDiffer, 'diff' | 'close'>;
  #logged: PolicySet | undefined;
  #isLogging = false;
  #closed = false;

  constructor(
    log: Logger,
    policies: PolicyProvider,
    clock: Pick<Clock, 'wallMicros'>,
    differ: Pick<PolicyDiffer, 'diff' | 'close'> = new PolicyDiffer(),
  ) {
    this.#log = log;
    this.#policies = policies;
    this.#clock = clock;
    this.#differ = differ;
    this.#logged = policies.current();
    policies.onReload(() => void this.#logChanges());
  }

  /** Stops logging. */
  close(): void {
    this.#closed = true;
    this.#differ.close();
  }

  async #logChanges(): Promise<void> {
    if (this.#isLogging) return;
    this.#isLogging = true;
    for (let now = this.#policies.current(); now !== this.#logged; now = this.#policies.current()) {
      if (this.#closed) return;
      const before = this.#logged;
      this.#logged = now;
      if (before !== undefined && now !== undefined) await this.#logChange(before, now);
    }
    this.#isLogging = false;
  }

  async #logChange(before: PolicySet, now: PolicySet): Promise<void> {
    const about = { before: before.version, policy: now.version };
    try {
      const { summary, lines, more } = await this.#differ.diff(before, now, this.#clock.wallMicros());
      const rest =
        more === 0
          ? ''
          : `; ${quantity(more, 'more change')} not listed (to see all changes, run weir diff <old> <new>)`;
      this.#log.info(about, `changes in the new policy: ${summary}${rest}`);
      for (const { domain, text } of lines) this.#log.info({ domain, policy: now.version }, text);
    } catch (error) {
      if (this.#closed) return;
      const why = error instanceof Error ? error.message : String(error);
      this.#log.warn(
        about,
        `the changes in the new policy could not be listed: ${why}; to see the changes, run weir diff <old> <new>`,
      );
    }
  }
}
