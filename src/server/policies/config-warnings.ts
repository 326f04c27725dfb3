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
  readonly #told = new Set<string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Logs the first warning of each kind that was not logged for `version`, which is in force. */
  tell(version: string, warnings: readonly ConfigProblem[]): void {
    for (const { kind, first, count } of groupProblems(warnings)) {
      const more = count === 1 ? '' : ` (the first of ${count} such warnings)`;
      this.tellOnce(version, kind, formatProblem(first) + more);
    }
  }

  /** Logs `text`, which may be anything of this `kind`. */
  tellOnce(version: string, kind: string, text: string): void {
    if (version !== this.#version) this.#told.clear();
    this.#version = version;
    if (this.#told.has(kind) || this.#told.size >= MAX_SHOWN) return;
    this.#told.add(kind);
    this.#log.warn(text);
  }
}
