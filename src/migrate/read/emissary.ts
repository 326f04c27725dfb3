import { itemsAt, type Manifest, manifestsOf, textAt } from '../../config/manifests/manifest.js';
import type { YamlValue } from '../../config/yaml/yaml-document.js';
import type { Finding } from '../findings.js';
import {
  type Conversion,
  type ConvertedLimit,
  conversionFailure,
  limitFields,
  limitsIn,
  separateLimits,
  unmatchableReason,
  wholeNumber,
} from './converted.js';
import type { Input } from './input.js';

/** Fields of a limit that weir can express (emissary-ingress docs, topics/using/rate-limits). */
const FIELDS = ['name', 'action', 'pattern', 'rate', 'unit'];

/** Advice for fields that weir cannot express. */
const REMEDIES: ReadonlyMap<string, string> = new Map([
  ['burstFactor', 'write the rule by hand, with algorithm: token_bucket and burst'],
  ['injectRequestHeaders', 'remove the field, or configure the headers in Envoy'],
  ['injectResponseHeaders', 'remove the field, and set response_headers in the policy'],
  ['errorResponse', 'remove the field, and set denied_response in the policy'],
]);

const UNITS = ['second', 'minute', 'hour', 'day'];

/**
 * Returns whether a manifest is a RateLimit of Emissary or Edge Stack. Other software uses the same kind, so the API
 * group is checked.
 */
function isRateLimit({ kind, fields }: Manifest): boolean {
  return kind === 'RateLimit' && textAt(fields, 'apiVersion').startsWith('getambassador.io/');
}

/** Converts the RateLimits of an input. Returns undefined if it contains none. */
export function convertEmissary(input: Input): Conversion | undefined {
  const manifests = manifestsOf(input.documents).filter(isRateLimit);
  if (manifests.length === 0) return undefined;
  const read = manifests.flatMap(({ fields }) => {
    const domain = textAt(fields, 'spec', 'domain');
    return limitsIn(fields).map((item) => readLimit(item, domain, `${input.file}:${item.at.line}`));
  });
  const advice = [
    {
      about: 'labels',
      text:
        'in Emissary, a pattern also matches label groups with additional labels at the end. weir applies ' +
        "a limit only to descriptors with exactly the limit's entries. Remove the additional labels from " +
        'the label groups.',
    },
    {
      about: 'RateLimitService',
      text: "set spec.service to weir's address, and set protocol_version to v3. You do not need to change Mappings.",
    },
  ];
  return {
    from: input,
    source: `the Emissary RateLimits in ${input.file}`,
    ...separateLimits(read),
    advice,
  };
}

/** Converts a limit. Returns a finding if weir cannot express it. */
function readLimit(given: YamlValue, domain: string, about: string): ConvertedLimit | Finding {
  const item = limitFields(given, FIELDS, about, REMEDIES);
  if ('text' in item) return item;
  const refuse = conversionFailure(about);
  if (domain === '')
    return refuse('its RateLimit has no domain', 'set spec.domain, because every weir policy needs a domain');
  const requests = textAt(item, 'rate');
  if (wholeNumber(requests, 0) === undefined)
    return refuse(`its rate ${JSON.stringify(requests)} is not a number of requests`, 'correct the rate');
  const unit = textAt(item, 'unit').toLowerCase();
  if (!UNITS.includes(unit)) {
    return refuse(`its unit ${JSON.stringify(unit)} is not one of ${UNITS.join(', ')}`, 'correct the unit');
  }
  const action = textAt(item, 'action').toLowerCase();
  if (!['', 'enforce', 'logonly'].includes(action))
    return refuse(
      `its action ${JSON.stringify(action)} is neither Enforce nor LogOnly`,
      'correct the action',
    );
  const entries: ConvertedLimit['entries'][number][] = [];
  for (const label of itemsAt(item, 'pattern')) {
    const fields = label.kind === 'map' ? [...label.fields.values()] : [];
    const [field] = fields;
    if (field === undefined || fields.length > 1) {
      return refuse(
        'an item of its pattern does not have exactly one key (in Emissary, several keys of an item are alternatives)',
        'write one limit for each key',
      );
    }
    if (field.value.kind !== 'scalar') {
      return refuse(
        `the value of ${JSON.stringify(field.key)} is not a string`,
        'write one limit for each value',
      );
    }
    const { text } = field.value;
    const value = text === '' || text === '*' ? undefined : text;
    const clause = value === undefined ? undefined : unmatchableReason(value);
    if (clause !== undefined)
      return refuse(`the value of ${JSON.stringify(field.key)} ${clause}`, 'write the rule by hand');
    entries.push({ key: field.key, value });
  }
  if (entries.length === 0)
    return refuse('its pattern is empty', 'add an item, because a weir rule needs at least one entry');
  const name = textAt(item, 'name');
  return { about, domain, entries, requests, unit, multiplier: 1, name, shadowMode: action === 'logonly' };
}
