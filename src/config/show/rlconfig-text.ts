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
  /** Worker processes that have other policies at the moment; absent or empty if all have these. */
  readonly differing?: readonly { readonly id: number; readonly policy: string }[];
}

/** Returns the text of `/rlconfig`. */
export function rlconfigText(
  form: ConfigForm,
  { policySet, domains, errors, wallMicros, differing = [] }: ShownConfig,
): string {
  if (form === 'json') {
    const workers = differing.length > 0 && { workers_with_other_policies: differing };
    return `${JSON.stringify({ ...dumpJson(policySet, domains, errors, wallMicros), ...workers }, null, 2)}\n`;
  }
  const notes = differing.map(
    ({ id, policy }) => `# worker ${id} has other policies (version ${policy}) at the moment\n`,
  );
  if (policySet === undefined) return notes.join('');
  return (form === 'tree' ? dumpTree(policySet, wallMicros) : dump(policySet)) + notes.join('');
}
