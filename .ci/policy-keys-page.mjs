// Prints the tables of docs/reference/policy-keys.md from the description of the format (compiled
// src/config/read/policy-fields.ts), and from the schema that is created from it.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { policySchema } from './policy-schema.mjs';
import { root } from './shell.mjs';

const { POLICY_FIELDS } = createRequire(import.meta.url)(
  join(root, 'build/src/config/read/policy-fields.js'),
);
const schema = policySchema();

/** The name of each mapping on the page, and its schema. */
const MAPPINGS = {
  file: ['top of the file', schema],
  descriptor: ['descriptor', definition('node')],
  rate_limit: ['`rate_limit`', definition('rate_limit')],
  rate_limits_item: ['item of `rate_limits`', definition('rate_limits_item')],
  token_bucket: ['`token_bucket`', definition('token_bucket')],
  concurrency: ['`concurrency`', definition('concurrency')],
  hold: ['`hold`', definition('hold')],
  priorities: ['`priorities`', definition('priorities')],
  lease: ['`lease`', definition('lease')],
  replaced_rule: ['item of `replaces`', definition('replaces').items],
  denied_response: ['`denied_response`', withProperties(definition('denied_response'))],
  on_over: ['`on_over`', definition('on_over')],
  phase_schedule: ['`phase`', withProperties(definition('phase'))],
  local_share: ['`on_store_failure`', withProperties(definition('on_store_failure'))],
  plans: ['`plans`', definition('plans')],
  plan_value: ['value of a field', definition('plan_value')],
  derive_item: ['item of `derive`', definition('derive_item')],
  derive_rule: ['item of `rules`', definition('derive_item').properties.rules.items],
};

/** The tables, each with its title. A key appears in the table of the first mapping that has it. */
const TABLES = [
  ['The file', ['file']],
  ['Descriptors', ['descriptor']],
  ['Limits', ['rate_limit', 'rate_limits_item']],
  ['Token buckets', ['token_bucket']],
  ['Concurrent requests', ['concurrency']],
  ['Holds', ['hold']],
  ['Priorities', ['priorities']],
  ['Leases', ['lease']],
  ['Replaced rules', ['replaced_rule']],
  ['Denied responses', ['denied_response']],
  ['Soft limits', ['on_over']],
  ['Phase schedules', ['phase_schedule']],
  ['Local shares', ['local_share']],
  ['Plans', ['plans', 'plan_value']],
  ['Derived entries', ['derive_item', 'derive_rule']],
];

/** Returns the tables of the page. */
export function policyKeys() {
  const rows = keyRows();
  return TABLES.map(([title, mappings]) => {
    const own = rows.filter(({ mapping }) => mappings.includes(mapping));
    return [`## ${title}\n`, HEAD, ...own.map(rowText)].join('\n');
  }).join('\n\n');
}

const HEAD = '| key | where | type | default | bounds | meaning | example |\n|---|---|---|---|---|---|---|';

/** Returns one row for each meaning of a key, with all mappings where the key has this meaning. */
function keyRows() {
  const rows = new Map();
  for (const [mapping, fields] of Object.entries(POLICY_FIELDS)) {
    const [place, part] = MAPPINGS[mapping];
    for (const [key, { xds }] of Object.entries(fields)) {
      const property = part.properties[key];
      const id = JSON.stringify([key, property]);
      const row = rows.get(id) ?? { key, xds, mapping, places: [], part: resolved(property), required: [] };
      row.places.push(place);
      if (part.required?.includes(key)) row.required.push(place);
      rows.set(id, row);
    }
  }
  return [...rows.values()];
}

function rowText({ key, xds, places, part, required }) {
  const standard = part.default === undefined ? (required.length > 0 ? 'required' : '–') : code(part.default);
  const files = xds === 'file_only' ? ' A management server cannot send this key.' : '';
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

const TYPES = { string: 'string', integer: 'whole number', boolean: 'true or false', object: 'mapping' };

/** Returns a type in words. A string can be written as a number in YAML, and null means absent. */
function typeOf(unresolved) {
  const part = resolved(unresolved);
  if (part.enum !== undefined) return part.enum.map((word) => `\`${word}\``).join(', ');
  if (part.const !== undefined) return `\`${part.const}\``;
  if (part.anyOf !== undefined) {
    const types = new Set(part.anyOf.filter(({ type }) => type !== 'null').map(typeOf));
    // The words are accepted in any case.
    if (part.anyOf.some((one) => one.enum !== undefined)) types.delete('string');
    return [...types].join(' or ');
  }
  const types = [part.type].flat();
  if (types.includes('string')) return 'string';
  if (types.includes('array')) return `list of ${plural(typeOf(part.items))}`;
  const [type] = types.filter((one) => one !== 'null');
  return TYPES[type] ?? type;
}

function plural(type) {
  return { string: 'strings', mapping: 'mappings' }[type] ?? type;
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

/** Returns an example as a line of YAML. */
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
