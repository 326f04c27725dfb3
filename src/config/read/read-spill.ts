import { nearest } from '../../nearest-name.js';
import type { RuleSpec } from '../../policy/rule.js';
import { shownStart } from '../../runtime/shown-address.js';
import type { FieldReader } from './field-reader.js';

/** Keys of a limit with `then` that belong to the last limit of its chain, which decides for all of them. */
const OF_THE_LAST = ['phase', 'shadow_mode', 'enforce_percent', 'on_store_failure'];

/** Checks `then` in the items of `rate_limits`. `rules` contains the limit of each item. */
export function checkSpill(items: readonly FieldReader[], rules: readonly RuleSpec[]): void {
  items.forEach((item, index) => {
    const { spillsTo } = rules[index] as RuleSpec;
    const isTarget = index > 0 && rules[index - 1]?.spillsTo !== '';
    if (spillsTo === '' && !isTarget) return;
    checkKind(item, rules[index] as RuleSpec);
    if (spillsTo === '') return;
    const problem = targetProblem(rules, index);
    if (problem !== undefined) item.error('then', problem);
    for (const key of OF_THE_LAST) {
      if (item.field(key) === undefined) continue;
      item.error(
        key,
        `"${key}" cannot be combined with "then", because the last limit of the chain decides; move the key to ` +
          'that limit',
      );
    }
  });
}

/** Returns the rules of a list, where the limits of a chain have the settings of its last limit, which decides. */
export function decidedByLast(rules: readonly RuleSpec[]): readonly RuleSpec[] {
  const decided = [...rules];
  for (let at = rules.length - 2; at >= 0; at--) {
    const rule = rules[at] as RuleSpec;
    const { phase, shadowMode, enforcePercent, onStoreFailure } = decided[at + 1] as RuleSpec;
    if (rule.spillsTo !== '') decided[at] = { ...rule, phase, shadowMode, enforcePercent, onStoreFailure };
  }
  return decided;
}

/** Reports settings that no limit of a chain can have. */
function checkKind(item: FieldReader, { rate, hold, onOver, spillsTo }: RuleSpec): void {
  const refuse = (key: string, reason: string): void =>
    item.error(
      key,
      `"${key}" cannot be in a chain of limits ("then"), because ${reason}; remove one of the two`,
    );
  if (rate?.kind === 'concurrency')
    refuse('concurrency', 'the end of a request does not know which limit paid');
  else if (hold !== undefined) refuse('hold', 'the end of a request does not know which limit paid');
  else if (spillsTo !== '' && rate !== undefined && rate.maxDebt > 0)
    refuse('allow_debt', 'a limit that can go into debt never spills');
  if (onOver !== undefined) refuse('on_over', 'requests over a soft limit pass');
}

/** Returns what is wrong with the name in `then`; undefined if nothing is. */
function targetProblem(rules: readonly RuleSpec[], index: number): string | undefined {
  const { name, spillsTo } = rules[index] as RuleSpec;
  if (rules[index + 1]?.name === spillsTo) return undefined;
  const shown = shownStart(spillsTo);
  if (spillsTo === name)
    return `"then" contains the limit's own name "${shown}"; write the name of the next limit`;
  const at = rules.findIndex((rule) => rule.name === spillsTo);
  if (at >= 0)
    return `"${shown}" must directly follow this limit in the list; move one of the two limits, or change "then"`;
  const similar = nearest(
    spillsTo,
    rules.map((rule) => rule.name).filter((other) => other !== '' && other !== name),
  );
  const hint = similar === undefined ? 'write the name of the next limit' : `did you mean "${similar}"?`;
  return `no limit in this list is named "${shown}"; ${hint}`;
}
