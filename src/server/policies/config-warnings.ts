import { MAX_SHOWN } from '../../config/policy-provider.js';
import { type ConfigProblem, formatProblem } from '../../config/yaml/config-problem.js';
import type { Logger } from '../../telemetry/logger.js';

/**
 * Logs warnings about a configuration once per version and kind, because a management server may repeat the same
 * problem in many places and pushes. At most {@link MAX_SHOWN} kinds are logged and remembered per version.
 */
export class ConfigWarnings {
  readonly #log: Logger;
  #version = '';
  readonly #loggedKinds = new Set<string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Logs the first warning of each kind that was not logged yet for `version`, the version in effect. */
  logNew(version: string, warnings: readonly ConfigProblem[]): void {
    for (const { kind, first, count } of groupProblems(warnings)) {
      const more = count === 1 ? '' : ` (the first of ${count} such warnings)`;
      this.logOnce(version, kind, formatProblem(first) + more);
    }
  }

  /** Logs `text` unless a warning of this `kind` was already logged for `version`. */
  logOnce(version: string, kind: string, text: string): void {
    if (version !== this.#version) this.#loggedKinds.clear();
    this.#version = version;
    if (this.#loggedKinds.has(kind) || this.#loggedKinds.size >= MAX_SHOWN) return;
    this.#loggedKinds.add(kind);
    this.#log.warn(text);
  }
}

/** Problems with the same remedy. */
interface ProblemGroup {
  /** The field and the message without the parts that differ between problems: quoted strings and numbers. */
  readonly kind: string;
  readonly first: ConfigProblem;
  readonly count: number;
}

/** Groups problems by kind, in the order of the first problem of each kind. */
function groupProblems(problems: readonly ConfigProblem[]): readonly ProblemGroup[] {
  const groups = new Map<string, ProblemGroup>();
  for (const problem of problems) {
    const field = problem.path.slice(problem.path.lastIndexOf('.') + 1);
    const kind = `${field}: ${problem.message}`.replaceAll(/"[^"]*"|\d+/g, '…');
    const { first = problem, count = 0 } = groups.get(kind) ?? {};
    groups.set(kind, { kind, first, count: count + 1 });
  }
  return [...groups.values()];
}
