import { MAX_SHOWN } from '../../config/policy-provider.js';
import { type ConfigProblem, formatProblem, groupProblems } from '../../config/yaml/config-problem.js';
import type { Logger } from '../../telemetry/logger.js';

/**
 * Logs warnings about a configuration once for each version of it and each kind, so that a management server whose
 * pushes have the same fault in many places does not fill the log. At most {@link MAX_SHOWN} kinds are logged, and
 * kept, for a version.
 */
export class ConfigWarnings {
  readonly #log: Logger;
  #version = '';
  readonly #loggedKinds = new Set<string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Logs the first warning of each kind that was not logged for `version`, which is in force. */
  logNew(version: string, warnings: readonly ConfigProblem[]): void {
    for (const { kind, first, count } of groupProblems(warnings)) {
      const more = count === 1 ? '' : ` (the first of ${count} such warnings)`;
      this.logOnce(version, kind, formatProblem(first) + more);
    }
  }

  /** Logs `text`, which may be anything of this `kind`. */
  logOnce(version: string, kind: string, text: string): void {
    if (version !== this.#version) this.#loggedKinds.clear();
    this.#version = version;
    if (this.#loggedKinds.has(kind) || this.#loggedKinds.size >= MAX_SHOWN) return;
    this.#loggedKinds.add(kind);
    this.#log.warn(text);
  }
}
