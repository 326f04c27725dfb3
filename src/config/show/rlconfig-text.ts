import type { DomainStatus } from '../../policy/policy.js';
import type { PolicySet } from '../../policy/policy-set.js';
import type { ConfigProblem } from '../yaml/config-problem.js';
import { dump } from './dump.js';
import { dumpJson } from './dump-json.js';
import { dumpTree } from './dump-tree.js';

/** A form of `/rlconfig`. */
export type ConfigForm = 'lines' | 'tree' | 'json';

/** What `/rlconfig` shows. */
export interface ShownConfig {
  /** Undefined until a configuration is loaded. */
  readonly policySet: PolicySet | undefined;
  readonly domains: readonly DomainStatus[];
  /** Current problems of the files or resources. */
  readonly errors: readonly ConfigProblem[];
  /** Decides which phases are current. */
  readonly wallMicros: number;
}

/** Returns the text of `/rlconfig`. */
export function rlconfigText(
  form: ConfigForm,
  { policySet, domains, errors, wallMicros }: ShownConfig,
): string {
  if (form === 'json')
    return `${JSON.stringify(dumpJson(policySet, domains, errors, wallMicros), null, 2)}\n`;
  if (policySet === undefined) return '';
  return form === 'tree' ? dumpTree(policySet, wallMicros) : dump(policySet);
}
