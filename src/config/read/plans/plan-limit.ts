import type { LeaseSpec } from '../../../policy/leases.js';
import type { PlanKey, PlanRate, RateKeys, RateSpec } from '../../../policy/plans/plan-rate.js';
import { FIRST_COLUMN, PLAN_FLAGS } from '../../../policy/plans/plan-table.js';
import type { Algorithm } from '../../../policy/policy.js';
import type { PrioritySpec } from '../../../policy/priorities.js';
import type { HoldSpec } from '../../../policy/rule.js';
import { safePrefix } from '../../../runtime/shown-address.js';
import { ProblemList } from '../../yaml/config-problem.js';
import type { YamlMap, YamlScalar, YamlValue } from '../../yaml/yaml-document.js';
import { joinPath } from '../../yaml/yaml-value.js';
import { FieldReader } from '../field-reader.js';
import { readMapping } from '../field-values.js';
import { PLAN_VALUE_NAME, RATE_FIELDS } from '../policy-fields.js';
import {
  type LimitCheck,
  PLANNED_FIELDS,
  readPlanNumber,
  textOfNumber,
  type ValueKind,
} from './plan-columns.js';
import type { PlansReader } from './read-plans.js';

/** Defaults for the rates of a file. */
export interface RateDefaults {
  /** `algorithm` of the file, or of the environment. */
  readonly algorithm: Algorithm;
  /** `lease` of the file, or of the environment. */
  readonly lease: LeaseSpec | undefined;
  /** `plans` of the file. */
  readonly plans: PlansReader | undefined;
  /** Whether an entry on the path of the limit selects a row of `plans`. */
  readonly hasCustomer: boolean;
}

/** A rate, and the settings of its holds, if it has any. */
export interface RateFields {
  readonly rate: RateSpec;
  readonly hold: HoldSpec | undefined;
  readonly priorities: PrioritySpec | undefined;
  /** `lease` of the limit. */
  readonly lease: LeaseSpec | undefined;
  /** Present if numbers of the rate come from a plan. */
  readonly plan?: PlanRate;
}

/** A rate without values from plans, with the keys that set it. */
export interface FixedRate extends RateFields {
  readonly keys: RateKeys;
}

/** A field of a limit that reads its value from a plan: `max_tokens: { plan: burst, default: 100 }`. */
interface PlanValue {
  /** Path of the field in the limit. */
  readonly path: string;
  readonly kind: ValueKind;
  readonly column: number;
  readonly name: string;
  /** The number for rows and plans without the value; NaN if the value is required. */
  readonly default: number;
  readonly written: YamlMap;
}

/** Reads the rate of a limit that has no values from plans. */
export type ReadFixedRate = (reader: FieldReader, defaults: RateDefaults) => FixedRate | undefined;

const NAME = new RegExp(PLAN_VALUE_NAME);

/**
 * Reads a limit with fields that read their values from a plan. Returns undefined for a limit without such fields.
 * `readFixed` reads the limit with values in place of the references: first with the default values, and later with the
 * values of each row. Rows therefore have to pass the same checks as a policy.
 */
export function readPlanRate(
  reader: FieldReader,
  defaults: RateDefaults,
  readFixed: ReadFixedRate,
): { readonly fields: RateFields | undefined } | undefined {
  const { plans } = defaults;
  const errorsBefore = reader.problems.errorCount;
  const values = findValues(reader, plans);
  if (values === undefined) return undefined;
  const hasErrors = plans === undefined || reader.problems.errorCount > errorsBefore;
  const fields = hasErrors ? undefined : readWithValues(reader, defaults, readFixed, plans, values);
  if (fields === undefined && plans !== undefined) plans.hasInvalidLimit = true;
  return { fields };
}

function readWithValues(
  reader: FieldReader,
  defaults: RateDefaults,
  readFixed: ReadFixedRate,
  plans: PlansReader,
  values: readonly PlanValue[],
): RateFields | undefined {
  const errorsBefore = reader.problems.errorCount;
  const standards: number[] = [];
  for (const { name, kind, default: ownDefault } of values) {
    const standard = plans.standardOf(name, kind);
    if (standard === undefined) return undefined;
    standards.push(Number.isNaN(standard) ? ownDefault : standard);
  }
  values.forEach((value, i) => {
    if (!Number.isNaN(standards[i])) return;
    reader.problems.error(
      value.written.at,
      reader.pathOf(value.path),
      `customers without a row have no value "${value.name}"; add it to the plan that "plans.default" names, or ` +
        `write { plan: ${value.name}, default: <value> }`,
    );
  });
  const base = new FieldReader(
    withValues(reader.map, values, standards),
    reader.path,
    reader.problems,
    reader.vocabulary,
  );
  const isComplete = reader.problems.errorCount === errorsBefore;
  const fields = isComplete ? readFixed(base, defaults) : undefined;
  if (fields !== undefined) checkHold(reader, fields, values);
  if (fields === undefined || reader.problems.errorCount > errorsBefore) return undefined;
  plans.checks.push(checkOf(reader, values, defaults, readFixed));
  const columns = values.map(({ path, column, name, default: standard }) => {
    return { key: keyOf(path), column, name, default: standard };
  });
  const { rate, hold, priorities, lease } = fields;
  return { rate, hold, priorities, lease, plan: { ...fields.keys, columns } };
}

/**
 * Reports limits whose holds could not be settled exactly after a row has changed. A window counts hits regardless of
 * its limit, but a window in debt stores only the hits above its limit. A token bucket stores the time until it is
 * full, so the same hits would take a different time to refill after the change.
 */
function checkHold(reader: FieldReader, { rate, hold }: RateFields, values: readonly PlanValue[]): void {
  if (hold === undefined || rate.kind === 'concurrency') return;
  const field = values.find(({ path }) => path === 'unit' || path.startsWith('token_bucket.'));
  if (field?.path === 'unit') {
    reader.error(
      'unit',
      '"unit" cannot come from a plan if the limit has "hold", because changing the unit would start a new ' +
        'window; write a fixed unit, or remove "hold"',
    );
  } else if (rate.kind === 'token_bucket' && values.some(({ path }) => path !== 'hold.amount')) {
    reader.error(
      'hold',
      '"hold" cannot be combined with a token bucket whose numbers come from a plan, because settlements would give ' +
        'back too little after a change; write "unit" and "requests_per_unit" instead, or remove "hold"',
    );
  } else if (
    rate.kind === 'window' &&
    rate.maxDebt !== 0 &&
    values.some(({ path }) => path !== 'hold.amount')
  ) {
    reader.error(
      'max_debt',
      'if the limit has "hold" and a value from a plan, "max_debt" must be 0, because a window in debt would stay ' +
        'used up after the limit is raised; write max_debt: 0',
    );
  }
}

/**
 * Returns the fields that read their values from plans, in the order of {@link PLANNED_FIELDS}; undefined if there are
 * none. Reports invalid references, and fields that cannot read their value from a plan.
 */
function findValues(reader: FieldReader, plans: PlansReader | undefined): readonly PlanValue[] | undefined {
  const values: PlanValue[] = [];
  let isFound = false;
  const search = (map: YamlMap, place: string): void => {
    for (const [key, { value }] of map.fields) {
      if (value.kind !== 'map' || (place === '' && !Object.hasOwn(RATE_FIELDS, key))) continue;
      // Its keys are names of classes.
      if (place === '' && key === 'priorities') continue;
      const path = joinPath(place, key);
      const kind = PLANNED_FIELDS.get(path);
      if (kind === undefined && !value.fields.has('plan')) {
        search(value, path);
        continue;
      }
      isFound = true;
      const written = new FieldReader(value, reader.pathOf(path), reader.problems);
      if (kind === undefined) {
        reader.problems.error(
          value.at,
          written.path,
          `"${key}" cannot take a value from a plan; write the value`,
        );
        continue;
      }
      const read = readValue(written, path, kind, plans);
      if (read !== undefined) values.push(read);
    }
  };
  search(reader.map, '');
  const order = [...PLANNED_FIELDS.keys()];
  values.sort((one, other) => order.indexOf(one.path) - order.indexOf(other.path));
  return isFound ? values : undefined;
}

function readValue(
  value: FieldReader,
  path: string,
  kind: ValueKind,
  plans: PlansReader | undefined,
): PlanValue | undefined {
  const { plan: name } = readMapping(value, 'plan_value');
  if (name === undefined) return undefined;
  const { map: written, problems } = value;
  if (plans === undefined) {
    problems.error(
      written.at,
      value.path,
      'the value comes from a plan, but the policy has no "plans"; add "plans" at the top of the file, or write the ' +
        'value',
    );
    return undefined;
  }
  if (!NAME.test(name) || (PLAN_FLAGS as readonly string[]).includes(name) || name === plans.by) {
    value.error(
      'plan',
      `"${safePrefix(name)}" cannot be the name of a value; write letters, digits, "_" and "-", beginning with a ` +
        `letter, and none of ${[...PLAN_FLAGS, plans.by].join(', ')}`,
    );
    return undefined;
  }
  const column = plans.columns.add(name, kind);
  if (column === undefined) {
    value.error(
      'plan',
      `another limit uses the value "${name}" as a value of another type; choose another name for one of them`,
    );
    return undefined;
  }
  const standard = readPlanNumber(value, 'default', kind);
  return standard === undefined ? undefined : { path, kind, column, name, default: standard, written };
}

/** Returns the mapping of a limit with numbers in place of the references. Omits a field if it has no number. */
function withValues(map: YamlMap, values: readonly PlanValue[], numbers: readonly number[]): YamlMap {
  let changed = map;
  for (const [i, { path, kind, written }] of values.entries()) {
    const number = numbers[i] as number;
    const scalar: YamlScalar | undefined = Number.isNaN(number)
      ? undefined
      : { kind: 'scalar', text: textOfNumber(kind, number), plain: true, at: written.at };
    changed = replaced(changed, path.split('.'), scalar);
  }
  return changed;
}

function replaced(map: YamlMap, path: readonly string[], by: YamlScalar | undefined): YamlMap {
  const [first = '', ...rest] = path;
  const field = map.fields.get(first);
  if (field === undefined) return map;
  const fields = new Map(map.fields);
  const inner: YamlValue | undefined =
    rest.length > 0 && field.value.kind === 'map' ? replaced(field.value, rest, by) : by;
  if (inner === undefined) fields.delete(first);
  else fields.set(first, { ...field, value: inner });
  return { ...map, fields };
}

function checkOf(
  reader: FieldReader,
  values: readonly PlanValue[],
  defaults: RateDefaults,
  readFixed: ReadFixedRate,
): LimitCheck {
  return (row) => {
    const numbers = values.map(({ column, default: standard }) => {
      const number = row[FIRST_COLUMN + column] as number;
      return Number.isNaN(number) ? standard : number;
    });
    const missing = values.find((_, i) => Number.isNaN(numbers[i]));
    if (missing !== undefined) {
      const message = `the value "${missing.name}" is missing; add it to the row or to its plan`;
      return { cell: -1, message };
    }
    const problems = new ProblemList(reader.problems.file);
    readFixed(new FieldReader(withValues(reader.map, values, numbers), '', problems), defaults);
    const [first] = problems.errors;
    if (first === undefined) return undefined;
    const wrong = values.find(({ path }) => path === first.path);
    return { cell: wrong === undefined ? -1 : FIRST_COLUMN + wrong.column, message: first.message };
  };
}

/** Returns the key of a field: the last part of its path. */
function keyOf(path: string): PlanKey {
  return path.slice(path.lastIndexOf('.') + 1) as PlanKey;
}
