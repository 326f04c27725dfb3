import { itemsAt, valueAt } from '../../config/manifests/manifest.js';
import type { YamlMap, YamlValue } from '../../config/yaml/yaml-document.js';
import type { Finding } from '../findings.js';
import type { Input } from './input.js';

/** A limit of another service, converted to a rule of weir. */
export interface ConvertedLimit {
  /** Position in the file, for messages: `limits.yaml:12`. */
  readonly about: string;
  readonly domain: string;
  /** Entries of the descriptor, in order. An undefined `value` matches any value, with a bucket for each. */
  readonly entries: readonly { readonly key: string; readonly value: string | undefined }[];
  readonly requests: string;
  readonly unit: string;
  /** Number of units in a window. */
  readonly multiplier: number;
  /** Name of the limit; '' if it has none. */
  readonly name: string;
  readonly shadowMode: boolean;
}

/** Result of converting the limits of another service. */
export interface Conversion {
  readonly from: Input;
  /** Description of the source: `the limits of Limitador in limits.yaml`. */
  readonly source: string;
  readonly limits: readonly ConvertedLimit[];
  /** Limits that weir cannot express. */
  readonly decide: readonly Finding[];
  /** Differences that apply to all of the limits. */
  readonly advice: readonly Finding[];
}

/**
 * Returns the items of `spec.limits` in a manifest. If the field is not a list, returns its value as the only item,
 * which is later rejected.
 */
export function limitsIn(manifest: YamlMap): readonly YamlValue[] {
  const limits = valueAt(manifest, 'spec', 'limits');
  return limits === undefined || limits.kind === 'list' ? itemsAt(limits) : [limits];
}

/** Returns a function that creates findings about the limit at `about`, which weir cannot express. */
export function conversionFailure(about: string): (clause: string, remedy: string) => Finding {
  return (clause, remedy) => ({ about, text: `this limit was not converted: ${clause}; ${remedy}.` });
}

/**
 * Returns a limit as a mapping, or a finding if weir cannot express it: because it is not a mapping, or because it has
 * a field that is not in `known`. `remedies` contains instructions for fields; by default, write the rule by hand.
 */
export function limitFields(
  item: YamlValue,
  known: readonly string[],
  about: string,
  remedies: ReadonlyMap<string, string> = new Map(),
): YamlMap | Finding {
  const refuse = conversionFailure(about);
  if (item.kind !== 'map') return refuse('it is not a mapping', 'write a mapping');
  const unknown = [...item.fields.keys()].find((key) => !known.includes(key));
  if (unknown === undefined) return item;
  const remedy = remedies.get(unknown) ?? 'write the rule by hand';
  return refuse(`weir has no equivalent for its field ${JSON.stringify(unknown)}`, remedy);
}

/** Separates converted limits from findings about limits that weir cannot express. */
export function separateLimits(read: readonly (ConvertedLimit | Finding)[]): {
  readonly limits: ConvertedLimit[];
  readonly decide: Finding[];
} {
  const limits: ConvertedLimit[] = [];
  const decide: Finding[] = [];
  for (const one of read) {
    if ('text' in one) decide.push(one);
    else limits.push(one);
  }
  return { limits, decide };
}

/** Units of a window with their lengths in seconds, in descending order. */
const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const;

/** Converts a length in seconds to a multiple of the longest unit that divides it. */
export function windowOf(seconds: number): Pick<ConvertedLimit, 'unit' | 'multiplier'> {
  const [unit, length] = UNITS.find(([, one]) => seconds % one === 0) ?? ['second', 1];
  return { unit, multiplier: seconds / length };
}

/** Parses a whole number between `least` and the maximum of a uint32. Returns undefined for any other text. */
export function wholeNumber(text: string, least: number): number | undefined {
  const number = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  return number >= least && number <= MAX_REQUESTS ? number : undefined;
}

/** Maximum `requests_per_unit`. */
const MAX_REQUESTS = 4_294_967_295;

/** Returns why a policy cannot match a value exactly, as a clause; undefined if it can. */
export function unmatchableReason(value: string): string | undefined {
  if (value === '') return 'is empty, and an empty value matches any value in a weir policy';
  return value.includes('*') ? 'contains a *, and * matches any text in a weir policy' : undefined;
}
