import { itemsAt, valueAt } from '../../config/manifests/manifest.js';
import type { YamlMap, YamlValue } from '../../config/yaml/yaml-document.js';
import type { Finding } from '../findings.js';
import type { Input } from './input.js';

/** A limit of another service, as a rule of weir. */
export interface ConvertedLimit {
  /** Where it is written, for messages: `limits.yaml:12`. */
  readonly about: string;
  readonly domain: string;
  /** Entries of the descriptor, in their order. `value` undefined: any value, each with a bucket of its own. */
  readonly entries: readonly { readonly key: string; readonly value: string | undefined }[];
  readonly requests: string;
  readonly unit: string;
  /** How many units a window has. */
  readonly multiplier: number;
  /** '' where it has none. */
  readonly name: string;
  readonly shadowMode: boolean;
}

/** What the limits of another service become. */
export interface Conversion {
  readonly from: Input;
  /** For people: `the limits of Limitador in limits.yaml`. */
  readonly source: string;
  readonly limits: readonly ConvertedLimit[];
  /** What has no equal in weir, by name. */
  readonly decide: readonly Finding[];
  /** Differences that hold for all of them. */
  readonly advice: readonly Finding[];
}

/**
 * The limits of a manifest, which are the items of `spec.limits`. Anything but a list is returned as the only limit,
 * which is refused then.
 */
export function limitsIn(manifest: YamlMap): readonly YamlValue[] {
  const limits = valueAt(manifest, 'spec', 'limits');
  return limits === undefined || limits.kind === 'list' ? itemsAt(limits) : [limits];
}

/** Makes findings about the limit at `about`, which has no equal. */
export function notALimit(about: string): (clause: string, remedy: string) => Finding {
  return (clause, remedy) => ({ about, text: `this limit was not converted: ${clause}; ${remedy}.` });
}

/**
 * Returns a limit as a mapping, or a finding if weir cannot express it: because it is not a mapping, or because it has
 * a field that is not in `known`. `remedies` say what to do about a field; the default is to write the rule by hand.
 */
export function limitFields(
  item: YamlValue,
  known: readonly string[],
  about: string,
  remedies: ReadonlyMap<string, string> = new Map(),
): YamlMap | Finding {
  const refuse = notALimit(about);
  if (item.kind !== 'map') return refuse('it is not a mapping', 'correct it');
  const unknown = [...item.fields.keys()].find((key) => !known.includes(key));
  if (unknown === undefined) return item;
  const remedy = remedies.get(unknown) ?? 'write the rule by hand';
  return refuse(`its field ${JSON.stringify(unknown)} has no equal in weir`, remedy);
}

/** Parts the limits that have an equal from the findings about those that have none. */
export function partLimits(read: readonly (ConvertedLimit | Finding)[]): {
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

/** Units of a window, the longest first, in seconds. */
const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const;

/** A length in seconds as a number of the longest unit that divides it. */
export function windowOf(seconds: number): Pick<ConvertedLimit, 'unit' | 'multiplier'> {
  const [unit, length] = UNITS.find(([, one]) => seconds % one === 0) ?? ['second', 1];
  return { unit, multiplier: seconds / length };
}

/** A whole number that a text writes, at least `least`; undefined for any other text. */
export function wholeNumber(text: string, least: number): number | undefined {
  const number = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  return number >= least && number <= MOST ? number : undefined;
}

/** Maximum `requests_per_unit`. */
const MOST = 4_294_967_295;

/** Why a value cannot be written as one that is matched exactly; a clause, and undefined where it can. */
export function unmatchable(value: string): string | undefined {
  if (value === '') return 'is empty, which stands for any value in a policy of weir';
  return value.includes('*') ? 'holds a *, which stands for any text in a policy of weir' : undefined;
}
