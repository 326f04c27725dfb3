import { type DeriveStep, RuleStep, TableStep } from '../../policy/derive/derive.js';
import { quantity } from '../../quantity.js';
import { describeDeriveRule, describeStep } from '../show/dump-tree.js';
import type { LocalChange } from './change.js';

/**
 * Returns one change per `derive` step that differs. Each change may select other limits, so it counts as tightening.
 * API keys are only counted, never shown.
 */
export function deriveChanges(
  before: readonly DeriveStep[],
  after: readonly DeriveStep[],
): readonly LocalChange[] {
  const changes: LocalChange[] = [];
  for (let i = 0; i < Math.max(before.length, after.length); i++) {
    const [old, now] = [before[i], after[i]];
    if (old === undefined && now !== undefined) {
      changes.push(deriveChange('appears', i, describeStep(now), { after: describeStep(now) }));
    } else if (old !== undefined && now === undefined) {
      changes.push(deriveChange('vanishes', i, describeStep(old), { before: describeStep(old) }));
    } else if (old !== undefined && now !== undefined) {
      const text = differenceOf(old, now);
      if (text !== '') {
        changes.push(
          deriveChange('tightens', i, text, { before: describeStep(old), after: describeStep(now) }),
        );
      }
    }
  }
  return changes;
}

function deriveChange(
  effect: LocalChange['effect'],
  place: number,
  text: string,
  shown: Pick<LocalChange, 'before' | 'after'>,
): LocalChange {
  const sentence = `derive[${place}], ${text}; different limits may now apply to requests`;
  return { setting: 'derive', effect, tightens: true, ...shown, text: sentence };
}

/** Returns the difference as text; '' if the steps are equal. */
function differenceOf(before: DeriveStep, after: DeriveStep): string {
  if (before instanceof TableStep && after instanceof TableStep) {
    if (before.entry === after.entry && before.source === after.source) return tableDifference(before, after);
  } else if (before instanceof RuleStep && after instanceof RuleStep) {
    const isSame = JSON.stringify([...before.sources].sort()) === JSON.stringify([...after.sources].sort());
    if (before.entry === after.entry && isSame) return rulesDifference(before, after);
  }
  return `${describeStep(before)} becomes ${describeStep(after)}`;
}

function tableDifference(before: TableStep, after: TableStep): string {
  let [added, moved] = [0, 0];
  for (const [digest, tenant] of after.table) {
    const old = before.table.get(digest);
    if (old === undefined) added += 1;
    else if (old !== tenant) moved += 1;
  }
  const removed = before.size - (after.size - added);
  const counts = [
    added > 0 ? `${keys(added)} added` : '',
    removed > 0 ? `${keys(removed)} removed` : '',
    moved > 0 ? `${keys(moved)} assigned to another ${after.entry}` : '',
  ].filter((text) => text !== '');
  return counts.length === 0 ? '' : `${after.entry} from ${after.source}: ${counts.join(', ')}`;
}

function keys(count: number): string {
  return quantity(count, 'API key');
}

const RULES_SHOWN = 3;

function rulesDifference(before: RuleStep, after: RuleStep): string {
  // The order of the source keys has no effect.
  const texts = ({ rules, sources }: RuleStep): readonly string[] => {
    const places = after.sources.map((source) => sources.indexOf(source));
    return rules.map(({ conditions, value }) =>
      describeDeriveRule({ conditions: places.map((place) => conditions[place]), value }, after.sources),
    );
  };
  const [old, now] = [texts(before), texts(after)];
  if (old.join('\n') === now.join('\n')) return '';
  const [was, is] = [new Set(old), new Set(now)];
  const added = now.filter((text) => !was.has(text));
  const removed = old.filter((text) => !is.has(text));
  const parts = [
    added.length > 0 ? `added: ${shown(added)}` : '',
    removed.length > 0 ? `removed: ${shown(removed)}` : '',
    added.length + removed.length === 0 ? 'rules are tried in a different order' : '',
  ].filter((text) => text !== '');
  return `${after.entry} from ${after.sources.join(', ')}: ${parts.join('; ')}`;
}

function shown(rules: readonly string[]): string {
  const first = rules.slice(0, RULES_SHOWN).join(', ');
  return rules.length > RULES_SHOWN ? `${first} and ${rules.length - RULES_SHOWN} more` : first;
}
