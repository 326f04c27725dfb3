// What docs/reference/policy-keys.md says of every key of the policy file: where it stands by the list of keys
// (compiled src/config/read/policy-fields.ts), all else by deploy/policy.schema.json, which a test holds to that list.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { root } from './shell.mjs';

const { POLICY_FIELDS } = createRequire(import.meta.url)(
  join(root, 'build/src/config/read/policy-fields.js'),
);
const schema = JSON.parse(readFileSync(join(root, 'deploy/policy.schema.json'), 'utf8'));

/** How a mapping is called, and what it is in the schema. */
const MAPPINGS = {
  file: ['top of the file', schema],
  descriptor: ['descriptor', definition('node')],
  rate_limit: ['`rate_limit`', definition('rate_limit')],
  rate_limits_item: ['item of `rate_limits`', definition('rate_limits_item')],
  candidate: ['`candidate`', definition('candidate')],
  token_bucket: ['`token_bucket`', definition('token_bucket')],
  replaced_rule: ['item of `replaces`', definition('replaces').items],
  denied_response: ['`denied_response`', withProperties(definition('denied_response'))],
  phase_schedule: ['`phase`', withProperties(definition('phase'))],
  local_share: ['`on_store_failure`', withProperties(definition('on_store_failure'))],
  derive_item: ['item of `derive`', definition('derive_item')],
  derive_rule: ['item of `rules`', definition('derive_item').properties.rules.items],
};

/** The tables, each with its title; a key goes to that of the first mapping that has it. */
const TABLES = [
  ['The file', ['file']],
  ['Descriptors', ['descriptor']],
  ['Limits', ['rate_limit', 'rate_limits_item', 'candidate']],
  ['Token buckets', ['token_bucket']],
  ['Rules that are replaced', ['replaced_rule']],
  ['What denied callers get', ['denied_response']],
  ['Phases with times', ['phase_schedule']],
  ['Shares of a limit without Redis', ['local_share']],
  ['Derived entries', ['derive_item', 'derive_rule']],
];

/** The page, but for what stands above the first table. */
export function policyKeys() {
  const rows = keyRows();
  return TABLES.map(([title, mappings]) => {
    const own = rows.filter(({ mapping }) => mappings.includes(mapping));
    return [`## ${title}\n`, HEAD, ...own.map(rowText)].join('\n');
  }).join('\n\n');
}

const HEAD = '| key | where | type | default | bounds | meaning | example |\n|---|---|---|---|---|---|---|';

/** Each key once for each meaning, with all mappings where it has that one. */
function keyRows() {
  const rows = new Map();
  for (const [mapping, fields] of Object.entries(POLICY_FIELDS)) {
    const [place, part] = MAPPINGS[mapping];
    for (const [key, form] of Object.entries(fields)) {
      const property = part.properties[key];
      const id = JSON.stringify([key, property]);
      const row = rows.get(id) ?? { key, form, mapping, places: [], part: resolved(property), required: [] };
      row.places.push(place);
      if (part.required?.includes(key)) row.required.push(place);
      rows.set(id, row);
    }
  }
  return [...rows.values()];
}

function rowText({ key, form, places, part, required }) {
  const standard = part.default === undefined ? (required.length > 0 ? 'required' : '–') : code(part.default);
  const files = form === 'file_only' ? ' Not in updates of a management server.' : '';
  const cells = [
    `\`${key}\``,
    places.join(', '),
    typeOf(part),
    standard,
    boundsOf(part),
    part.description + files,
    exampleOf(key, part),
  ];
  return `| ${cells.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`;
}

function definition(name) {
  return schema.definitions[name];
}

function resolved(part) {
  return part.$ref === undefined ? part : definition(part.$ref.replace('#/definitions/', ''));
}

function withProperties({ anyOf }) {
  return anyOf.find(({ properties }) => properties !== undefined);
}

const TYPES = { string: 'text', integer: 'whole number', boolean: 'true or false', object: 'mapping' };

/** In words; texts may be written as numbers, null is as if the key were not there. */
function typeOf(unresolved) {
  const part = resolved(unresolved);
  if (part.enum !== undefined) return part.enum.map((word) => `\`${word}\``).join(', ');
  if (part.const !== undefined) return `\`${part.const}\``;
  if (part.anyOf !== undefined) {
    const types = new Set(part.anyOf.filter(({ type }) => type !== 'null').map(typeOf));
    // Words in any case.
    if (part.anyOf.some((one) => one.enum !== undefined)) types.delete('text');
    return [...types].join(' or ');
  }
  const types = [part.type].flat();
  if (types.includes('string')) return 'text';
  if (types.includes('array')) return `list of ${plural(typeOf(part.items))}`;
  const [type] = types.filter((one) => one !== 'null');
  return TYPES[type] ?? type;
}

function plural(type) {
  return { text: 'texts', mapping: 'mappings' }[type] ?? type;
}

function boundsOf(part) {
  const isText = [part.type].flat().includes('string');
  const bounds = [
    isText ? '' : between(part.minimum, part.maximum, ''),
    between(part.minItems, part.maxItems, ' items'),
    between(part.minLength, part.maxLength, ' characters'),
  ].filter((text) => text !== '');
  return bounds.join(', ') || '–';
}

function between(least, most, unit) {
  if (least === undefined && most === undefined) return '';
  const many = (number) => number.toLocaleString('en');
  if (most === undefined) return least === 1 && unit !== '' ? 'not empty' : `at least ${many(least)}${unit}`;
  return least === undefined ? `at most ${many(most)}${unit}` : `${many(least)} to ${many(most)}${unit}`;
}

/** As a line of YAML. */
function exampleOf(key, part) {
  const words = part.enum ?? part.anyOf?.find((one) => one.enum !== undefined)?.enum;
  const [example = words?.[0] ?? true] = part.examples ?? [];
  return code(
    stringify({ [key]: example }, { collectionStyle: 'flow', flowCollectionPadding: false, lineWidth: 0 })
      .trim()
      .slice(1, -1),
  );
}

function code(value) {
  return `\`${value}\``;
}
