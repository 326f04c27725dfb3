import type { SettingType } from './settings-values.js';

/** Properties of a variable in envoyproxy/ratelimit, the reference. */
export interface ReferenceSetting {
  /** Default in the reference, in the form in which a user would set it. */
  readonly default: string;
  /** Meaning of an empty value in the reference, if it differs from an unset variable and weir supports it. */
  readonly whenEmpty?: string | undefined;
  /** Sentence with differences from the reference other than the default. */
  readonly differs?: string | undefined;
}

/** Properties that rows have in addition to name, type and default. */
interface Particulars {
  readonly help: string;
  readonly max?: number;
  /** Keeps the value out of logs and messages. */
  readonly secret?: true;
}

export interface Row<Type extends SettingType = SettingType> extends Particulars {
  /** Name of the environment variable. */
  readonly name: string;
  readonly type: Type;
  /** Default, as it would be written. '' means unset. */
  readonly default: string;
  /** See {@link when}. */
  readonly conditions: readonly string[];
  /** Undefined if only weir has the variable. */
  readonly reference?: ReferenceSetting;
}

/** Settings with values that are not accepted, with the reason and the remedy. */
export interface RefusedSetting {
  readonly variables: readonly string[];
  readonly sentence: string;
}

/** Declares a setting that only weir has. */
export function own<Type extends SettingType>(
  name: string,
  type: Type,
  value: string,
  more: Particulars,
): Row<Type> {
  return { name, type, default: value, conditions: [], ...more };
}

/** Declares a setting that the reference has, too. Its default there is `theirs`, by default the same as in weir. */
export function shared<Type extends SettingType>(
  name: string,
  type: Type,
  value: string,
  more: Particulars & Omit<ReferenceSetting, 'default'> & { readonly theirs?: string },
): Row<Type> {
  const { theirs = value, whenEmpty, differs, ...rest } = more;
  return { ...own(name, type, value, rest), reference: { default: theirs, whenEmpty, differs } };
}

/**
 * Declares settings that have no effect without a condition on another setting: `REDIS_URL` (is set, or above 0),
 * `GRPC_TRANSPORT=h2`, or `GRPC_UDS=` (is unset). `or` separates alternatives. The log names settings without effect.
 */
export function when<Rows extends Readonly<Record<string, Row>>>(condition: string, rows: Rows): Rows {
  const entries = Object.entries(rows).map(([key, row]) => [
    key,
    { ...row, conditions: [condition, ...row.conditions] },
  ]);
  return Object.fromEntries(entries) as Rows;
}
