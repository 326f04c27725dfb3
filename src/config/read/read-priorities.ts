import { MAX_UINT32 } from '../../limiter/rate-algorithm.js';
import { type RateSpec, rateOf } from '../../policy/plans/plan-rate.js';
import {
  type ClassSpec,
  keptHits,
  keptText,
  type PrioritySpec,
  SHARE_UNITS,
} from '../../policy/priorities.js';
import { isSecretKey } from '../../policy/redact.js';
import type { HoldSpec, RuleSpec } from '../../policy/rule.js';
import type { NodeFields } from '../../policy/spec.js';
import { nearest } from '../../runtime/nearest-name.js';
import { safePrefix } from '../../runtime/shown-address.js';
import { type FieldReader, kindName } from './field-reader.js';
import { readMapping } from './field-values.js';
import { MAX_CLASSES, SHARE } from './policy-fields.js';

/** The limit that the classes share. */
interface SharedLimit {
  readonly rate: RateSpec;
  readonly hold: HoldSpec | undefined;
}

const IS_SHARE = new RegExp(SHARE);

/**
 * Reads `priorities` of a limit, which is undefined if it is invalid. Returns undefined if there are errors, all of
 * which are reported.
 */
export function readPriorities(
  priorities: FieldReader,
  limit: SharedLimit | undefined,
): PrioritySpec | undefined {
  const errorsBefore = priorities.problems.errorCount;
  const { by, keep, unknown } = readMapping(priorities, 'priorities');
  const classes = keep === undefined ? [] : readClasses(keep);
  if (unknown !== undefined && keep !== undefined && !keep.has(unknown)) {
    const near = nearest(unknown, keep.map.fields.keys());
    const remedy = near === undefined ? 'write the name of a class in "keep"' : `did you mean "${near}"?`;
    priorities.error('unknown', `"${safePrefix(unknown)}" is not a class in "keep"; ${remedy}`);
  }
  if (by === undefined || keep === undefined || limit === undefined) return undefined;
  if (priorities.problems.errorCount > errorsBefore) return undefined;
  const capacity = rateOf(limit.rate, true).reportedLimit;
  checkDebt(priorities, limit);
  for (const one of classes) checkClass(keep, one, limit);
  const [first, ...others] = classes as readonly [ClassSpec, ...ClassSpec[]];
  const most = others.reduce(
    (one, other) => (keptHits(other, capacity) > keptHits(one, capacity) ? other : one),
    first,
  );
  return { by, classes, unknown: unknown ?? most.name };
}

function readClasses(keep: FieldReader): readonly ClassSpec[] {
  const names = [...keep.map.fields.keys()];
  if (names.length === 0 || names.length > MAX_CLASSES) {
    keep.problems.error(
      keep.map.at,
      keep.path,
      `"keep" has ${names.length} classes; write 1 to ${MAX_CLASSES} classes, each with a number or a share, such ` +
        'as batch: 50%',
    );
    return [];
  }
  return names.flatMap((name) => readClass(keep, name) ?? []);
}

function readClass(keep: FieldReader, name: string): ClassSpec | undefined {
  if (name === '') {
    keep.error(name, 'the name of the class is empty; write a name, such as batch');
    return undefined;
  }
  const value = keep.field(name)?.value;
  const text = value?.kind === 'scalar' ? value.text.trim() : '';
  if (IS_SHARE.test(text)) {
    const [whole = '', part = ''] = text.slice(0, -1).split('.');
    const share = Number(whole) * (SHARE_UNITS / 100) + Number(part.padEnd(3, '0'));
    return { name, keep: share, isShare: true };
  }
  if (/^\d{1,10}$/.test(text) && Number(text) <= MAX_UINT32) {
    return { name, keep: Number(text), isShare: false };
  }
  const written = value?.kind === 'scalar' ? `"${safePrefix(text)}"` : value && `a ${kindName(value)}`;
  keep.error(
    name,
    `what a class keeps must be a whole number up to ${MAX_UINT32} or a percentage, not ${written ?? 'nothing'}; ` +
      'write a number such as 20, or a share of the limit such as 50%',
  );
  return undefined;
}

/** Checks that requests of a class can pass. */
function checkClass(keep: FieldReader, one: ClassSpec, { rate, hold }: SharedLimit): void {
  const capacity = rateOf(rate, true).reportedLimit;
  const left = capacity - keptHits(one, capacity);
  const name = `the class "${safePrefix(one.name)}"`;
  if (left < 1) {
    const remedy = capacity > 1 ? `keep at most ${capacity - 1}` : 'keep 0';
    keep.error(
      one.name,
      `${name} keeps ${keptText(one)} of a limit of ${capacity}, so none of its requests could ever pass; ` +
        (capacity < 1 ? 'raise the limit' : remedy),
    );
  } else if (hold?.amount !== undefined && hold.amount > left) {
    keep.error(
      one.name,
      `${name} can use ${left} of a limit of ${capacity}, but each request holds ${hold.amount}, so none of its ` +
        `requests could ever pass; keep at most ${capacity - hold.amount}, or lower "amount"`,
    );
  }
}

/** A window in debt stores only the hits above its limit, and classes have different limits. */
function checkDebt(priorities: FieldReader, { rate }: SharedLimit): void {
  if (rate.kind !== 'window' || rate.maxDebt === 0 || Number.isFinite(rate.minChargeHits)) return;
  priorities.problems.error(
    priorities.map.at,
    priorities.path,
    '"priorities" cannot be combined with a window whose settlements leave debt, because classes would disagree ' +
      'about the debt; add max_debt: 0, or write algorithm: token_bucket',
  );
}

/** A node on the path to a limit. */
export type PathNode = Pick<NodeFields, 'key' | 'value' | 'matcher'>;

/** What decides whether the entry `by` can name the classes of a limit. */
interface ClassContext {
  /** From the first level to the descriptor of the limit. */
  readonly path: readonly PathNode[];
  /** All limits of the descriptor. */
  readonly rules: readonly RuleSpec[];
  readonly secretKeys: ReadonlySet<string>;
  /** `plans.by`. */
  readonly customer: string | undefined;
}

/** Checks that the entry `by` can name the class of callers of a limit. `limit` reads the limit. */
export function checkClassEntry(limit: FieldReader, rule: RuleSpec, context: ClassContext): void {
  const priorities = rule.priorities && limit.mapping('priorities');
  if (rule.priorities === undefined || priorities === undefined) return;
  const { path, rules, secretKeys, customer } = context;
  const { by } = rule.priorities;
  const at = path.findLastIndex(({ key }) => key === by);
  const node = path[at];
  const shown = safePrefix(by);
  const refuse = (message: string): void => priorities.error('by', message);
  if (node === undefined) {
    const keys = path.map(({ key }) => key);
    const near = nearest(by, keys);
    const remedy =
      near === undefined
        ? `move the limit to a descriptor with key: ${shown}, or below one`
        : `did you mean "${near}"?`;
    refuse(`no descriptor from the top to the limit has the key "${shown}"; ${remedy}`);
  } else if (node.value !== '' || node.matcher !== undefined) {
    refuse(
      `the descriptor with the key "${shown}" matches only some values, so other classes would not meet the limit; ` +
        'remove its value, and name the classes in "keep"',
    );
  } else if (isSecretKey(by, secretKeys)) {
    refuse(
      `the values of "${shown}" are secrets, which a policy must not contain; derive another entry from it with ` +
        '"derive", and write the key of that entry',
    );
  } else if (rules.some((other) => other.priorities !== undefined && other.priorities.by !== by)) {
    refuse('the limits of a list must have the same "by"; change one of them');
  } else if (at === 0 && rules.some((other) => other.priorities === undefined)) {
    refuse(
      `"${shown}" is the first entry of the descriptor, so other limits of the list could be on another Redis ` +
        'server; put the descriptor below another one, such as key: generic_key',
    );
  } else if (by === customer && rule.plan !== undefined) {
    refuse(
      `all values of "${shown}" share one bucket, so its limit cannot come from the plan of one of them; write the ` +
        'number',
    );
  }
}
