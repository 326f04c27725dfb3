import type { OpenedPart } from '../../config/manifests/config-maps.js';
import { entriesAt, itemsAt, textAt, valueAt } from '../../config/manifests/manifest.js';
import type { YamlValue } from '../../config/yaml/yaml-document.js';

/** Keys that envoyproxy/ratelimit accepts at any level (src/config/config_impl.go, validKeys, July 2026). */
const REFERENCE_KEYS = new Set([
  'domain',
  'key',
  'value',
  'descriptors',
  'rate_limit',
  'unit',
  'requests_per_unit',
  'unlimited',
  'shadow_mode',
  'quota_mode',
  'name',
  'replaces',
  'detailed_metric',
  'value_to_metric',
  'share_threshold',
  'metadata',
]);

const UNIT = /^(?:second|minute|hour|day|week|month|year)$/i;
const BOOLEAN = /^(?:true|false|yes|no|on|off|y|n|~|null|)$/i;
const SWITCHES = ['shadow_mode', 'quota_mode', 'detailed_metric', 'value_to_metric', 'share_threshold'];
const MAX_UINT32 = 0xffff_ffff;

/** Keys at the top level of each domain, in the form `key_value` that envoyproxy/ratelimit compares. */
type DomainKeys = Map<string, Set<string>>;

/**
 * Returns which of the policies that `isSelected` selects envoyproxy/ratelimit rejects or accepts. A policy is in
 * neither set if that is unknown. The reference reads `parts` in order; `merges` (MERGE_DOMAIN_CONFIG) allows several
 * files with the same domain.
 */
export function judgeByReference(
  parts: readonly OpenedPart[],
  merges: boolean,
  isSelected: (name: string) => boolean,
): { readonly rejected: ReadonlySet<string>; readonly accepted: ReadonlySet<string> } {
  const seen: DomainKeys = new Map();
  const rejected = new Set<string>();
  const accepted = new Set<string>();
  for (const { name, opened } of parts) {
    const root = opened.source?.root.map;
    const isNoYaml = opened.problems.errors.some(({ message }) =>
      message.startsWith('this is not valid YAML'),
    );
    const isBad = root === undefined || isRejected(root, merges, seen);
    if (!isSelected(name)) continue;
    if (root !== undefined) (isBad ? rejected : accepted).add(name);
    else if (isNoYaml || opened.isNotPolicy) rejected.add(name);
  }
  return { rejected, accepted };
}

function isRejected(root: YamlValue, merges: boolean, seen: DomainKeys): boolean {
  const domain = textAt(root, 'domain');
  const before = seen.get(domain);
  const keys = before ?? new Set<string>();
  seen.set(domain, keys);
  return (
    domain === '' || (before !== undefined && !merges) || hasUnknownKey(root) || hasBadDescriptor(root, keys)
  );
}

function hasUnknownKey(value: YamlValue): boolean {
  return entriesAt(value).some(([key, child]) => {
    if (!REFERENCE_KEYS.has(key)) return true;
    if (key === 'metadata') return false;
    if (child.kind === 'list') return child.items.some((item) => item.kind !== 'map' || hasUnknownKey(item));
    return hasUnknownKey(child);
  });
}

/**
 * Returns whether envoyproxy/ratelimit rejects a descriptor below `parent`. `keys` contains the keys already used at
 * this level.
 */
function hasBadDescriptor(parent: YamlValue, keys: Set<string>): boolean {
  const below = valueAt(parent, 'descriptors');
  if (below !== undefined && below.kind !== 'list' && textAt(parent, 'descriptors') !== '') return true;
  return itemsAt(parent, 'descriptors').some((descriptor) => {
    const value = textAt(descriptor, 'value');
    const key = textAt(descriptor, 'key');
    const joined = value === '' ? key : `${key}_${value}`;
    if (key === '' || keys.has(joined)) return true;
    keys.add(joined);
    return (
      SWITCHES.some((name) => !isBoolean(descriptor, name)) ||
      isBadLimit(valueAt(descriptor, 'rate_limit')) ||
      hasBadDescriptor(descriptor, new Set())
    );
  });
}

function isBadLimit(limit: YamlValue | undefined): boolean {
  if (limit === undefined || (limit.kind === 'scalar' && BOOLEAN.test(limit.text))) return false;
  if (limit.kind !== 'map' || !isBoolean(limit, 'unlimited')) return true;
  const isUnlimited = /^(?:true|yes|on|y)$/i.test(textAt(limit, 'unlimited'));
  if (UNIT.test(textAt(limit, 'unit')) === isUnlimited) return true;
  const requests = valueAt(limit, 'requests_per_unit');
  if (requests !== undefined && !isUint32(requests)) return true;
  return itemsAt(limit, 'replaces').some((one) => {
    const name = textAt(one, 'name');
    return name === '' || name === textAt(limit, 'name');
  });
}

function isUint32(value: YamlValue): boolean {
  if (value.kind !== 'scalar' || !value.plain) return false;
  if (/^(?:|~|null)$/i.test(value.text)) return true;
  return /^[+\d]\w*$/.test(value.text) && Number(value.text.replaceAll('_', '')) <= MAX_UINT32;
}

function isBoolean(map: YamlValue, key: string): boolean {
  const value = valueAt(map, key);
  return value === undefined || (value.kind === 'scalar' && value.plain && BOOLEAN.test(value.text));
}
