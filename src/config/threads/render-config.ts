import type { PolicySet } from '../../policy/policy-set.js';
import { type ConfigForm, rlconfigText, type ShownConfig } from '../show/rlconfig-text.js';
import { policyTask } from './policy-task.js';

/** Input of the thread. */
export interface ConfigRequest extends Omit<ShownConfig, 'policySet'> {
  readonly form: ConfigForm;
}

/** Maximum number of rules, and of rules of `derive`, that are rendered in this thread, which takes about 5 ms. */
export const MAX_RULES_AT_ONCE = 1000;

/** Returns the text of `/rlconfig`. A thread renders large policies. */
export async function renderConfig(form: ConfigForm, shown: ShownConfig): Promise<string | Buffer> {
  const { policySet, ...rest } = shown;
  if (policySet === undefined || rulesOf(policySet) <= MAX_RULES_AT_ONCE) return rlconfigText(form, shown);
  const script = 'src/config/threads/rlconfig-thread.js';
  const request: ConfigRequest = { ...rest, form };
  const bytes = await policyTask<ConfigRequest, Uint8Array<ArrayBuffer>>(
    script,
    'renders policies',
    request,
    [policySet],
  );
  return Buffer.from(bytes.buffer);
}

function rulesOf({ domains }: PolicySet): number {
  let count = 0;
  for (const { rules, steps } of domains.values()) {
    count += rules.length;
    for (const step of steps) if (step.kind === 'rules') count += step.rules.length;
  }
  return count;
}
