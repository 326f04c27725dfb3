import type { Field, MappingName } from './field.js';
import { keysOf, POLICY_FIELDS } from './policy-fields.js';

/** Keys that users are likely to put in a mapping that does not have them, and what to do instead. */
export const REFUSED_KEYS: Partial<Readonly<Record<MappingName, ReadonlyMap<string, string>>>> = {
  descriptor: new Map([
    [
      'actions',
      'this key belongs to a route in the Envoy configuration, where it defines descriptors; move the key ' +
        'to that route, and limit the descriptors here with "key" and "rate_limit"',
    ],
  ]),
  rate_limits_item: new Map([
    [
      'unlimited',
      'a limit in a list cannot be unlimited; remove the item, or use rate_limit: { unlimited: true }',
    ],
    [
      'quota_mode',
      'a list denies as soon as one of its limits is exceeded, so its limits cannot be quotas; remove "quota_mode"',
    ],
  ]),
  concurrency: new Map([
    [
      'pair',
      'a limit on concurrent requests needs hold tokens, because each lost end would otherwise occupy a slot ' +
        'permanently; remove "pair", and let Envoy send the hold token',
    ],
  ]),
};

/** How messages name the mappings in which users misplace keys. */
const PLACES = [
  ['file', 'at the top of the file'],
  ['descriptor', 'in an item of "descriptors"'],
  ['rate_limit', 'in "rate_limit"'],
  ['rate_limits_item', 'in an item of "rate_limits"'],
] as const satisfies readonly (readonly [MappingName, string])[];

/** Every key of these mappings. */
export const ALL_KEYS: readonly string[] = [...new Set(PLACES.flatMap(([mapping]) => keysOf(mapping)))];

function fieldOf(mapping: MappingName, key: string): Field | undefined {
  const fields: Readonly<Record<string, Field>> = POLICY_FIELDS[mapping];
  return fields[key];
}

/** Returns the places of the keys that envoyproxy/ratelimit knows, or of those that only weir has. */
function placesOf(isReference: boolean): ReadonlyMap<string, string> {
  const places = new Map<string, string>();
  for (const key of ALL_KEYS) {
    const fields = PLACES.map(([mapping]) => fieldOf(mapping, key));
    if (fields.some((field) => field?.reference === true) !== isReference) continue;
    const known = PLACES.filter(([mapping], i) => {
      // Most keys of limits are the same in a list.
      if (mapping === 'rate_limits_item' && fieldOf('rate_limit', key) !== undefined) return false;
      return fields[i] !== undefined && (fields[i].reference === true) === isReference;
    }).map(([, place]) => place);
    const last = known.pop();
    places.set(key, known.length === 0 ? `${last}` : `${known.join(', ')} or ${last}`);
  }
  return places;
}

/**
 * Keys of envoyproxy/ratelimit and the mapping that each belongs to. envoyproxy/ratelimit accepts these keys in any
 * mapping and ignores them in the wrong one, so existing files may have them anywhere. A misplaced key is therefore a
 * warning here, while an unknown key is an error.
 */
export const MISPLACED_KEYS = placesOf(true);

/** Keys that only weir has, and the mapping that each belongs to. A misplaced one is an error. */
export const WEIR_KEYS = placesOf(false);
