// Creates deploy/policy.schema.json, the JSON Schema of policy files for editors, from the description of the format
// (compiled src/config/read/policy-fields.ts).
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { print } from './chart.mjs';
import { root } from './shell.mjs';

const compiled = createRequire(import.meta.url);
const {
  CONSTRAINTS,
  MAPPINGS_ABOUT,
  MAX_CLASSES,
  MAX_HEADER_LENGTH,
  MAX_HEADERS,
  POLICY_FIELDS,
  RATE_KEYS,
  SHARE,
} = compiled(join(root, 'build/src/config/read/policy-fields.js'));
const { WINDOW_UNITS } = compiled(join(root, 'build/src/limiter/window-unit.js'));

export const SCHEMA = 'deploy/policy.schema.json';

/** Mappings with a definition of their own. A mapping inside a definition of a key needs none. */
const DEFINED = {
  descriptor: 'node',
  rate_limits_item: 'rate_limits_item',
  plan_value: 'plan_value',
  derive_item: 'derive_item',
};
/** Keys with a definition of their own, in addition to keys that several mappings share. */
const DEFINED_KEYS = ['rate_limit', 'plans'];

const DURATION = '^\\+?(?:(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+$';
const TIME =
  '^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])[Tt ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$';
/** Texts that YAML may read as another type. */
const ANY_TEXT = ['string', 'number', 'boolean'];
/** Larger whole numbers are fractions for YAML, which names must not be. */
const MAX_NAME = 2 ** 63;
const DIGEST = '^[0-9a-fA-F]{64}$';

/** Conditions of mappings that the description does not express; see {@link constraint}. */
const EXTRA = {
  descriptor: [
    {
      $comment: 'share_threshold requires a node that matches several values.',
      if: equals('share_threshold', true),
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: {
        anyOf: [
          { required: ['value'], properties: { value: { type: 'string', pattern: '\\*' } } },
          { required: ['value_cidr'] },
          { required: ['value_regex'] },
        ],
      },
    },
  ],
  rate_limit: [
    {
      if: equals('unlimited', true),
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: none(RATE_KEYS.filter((key) => key !== 'requests_per_unit')),
      else: { $ref: '#/definitions/rate' },
    },
  ],
  rate_limits_item: [{ $ref: '#/definitions/rate' }],
  hold: [
    { oneOf: [{ required: ['amount'] }, { required: ['from'] }] },
    { not: { allOf: [equals('pair', 'oldest'), equals('unknown', 'free')] } },
  ],
  derive_item: [
    { oneOf: [{ required: ['rules'] }, any(['sha256', 'sha256_file'])] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    { if: any(['sha256', 'sha256_file']), then: { properties: { from: { maxItems: 1 } } } },
  ],
};

/** Conditions of the keys that set a rate. */
const RATE_EXTRA = [
  any(['token_bucket', 'unit', 'concurrency']),
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  { if: none(['token_bucket', 'concurrency']), then: { required: ['requests_per_unit'] } },
  {
    if: { required: ['calendar'] },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: {
      properties: {
        unit: { pattern: anyCase(['day', 'week', 'month', 'year']) },
        algorithm: { not: { const: 'token_bucket' } },
      },
    },
  },
];

/** Keys that several mappings have, with the number of mappings. */
const shared = new Map();
for (const fields of Object.values(POLICY_FIELDS))
  for (const field of new Set(Object.values(fields))) shared.set(field, (shared.get(field) ?? 0) + 1);

/** Returns the text of the schema. */
export function schemaText() {
  return `${print(policySchema())}\n`;
}

/** Returns the schema. */
export function policySchema() {
  const definitions = {};
  for (const [mapping, fields] of Object.entries(POLICY_FIELDS)) {
    if (mapping in DEFINED) definitions[DEFINED[mapping]] = mappingSchema(mapping);
    for (const [key, field] of Object.entries(fields)) {
      if (isDefined(key, field)) definitions[key] = fieldSchema(field);
    }
  }
  const constraints = CONSTRAINTS.rate_limit.map(constraint);
  definitions.rate = {
    $comment: 'Valid combinations of the keys of a limit.',
    allOf: [...RATE_EXTRA, ...constraints],
  };
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'weir policy file',
    ...mappingSchema('file'),
    definitions,
  };
}

function isDefined(key, field) {
  return shared.get(field) > 1 || DEFINED_KEYS.includes(key);
}

function mappingSchema(mapping) {
  const fields = Object.entries(POLICY_FIELDS[mapping]);
  const required = fields.filter(([, field]) => field.required !== undefined).map(([key]) => key);
  const conditions = [
    ...(EXTRA[mapping] ?? []),
    ...(isRate(mapping) ? [] : (CONSTRAINTS[mapping] ?? []).map(constraint)),
  ];
  return {
    ...(MAPPINGS_ABOUT[mapping] !== undefined && { description: MAPPINGS_ABOUT[mapping] }),
    type: 'object',
    ...(required.length > 0 && { required }),
    // A schedule without times would be empty.
    ...(mapping === 'phase_schedule' && { minProperties: 1 }),
    // A rule also has the keys of `from`.
    additionalProperties: mapping === 'derive_rule' ? { type: [...ANY_TEXT, 'null'] } : false,
    properties: Object.fromEntries(
      fields.map(([key, field]) => [
        key,
        isDefined(key, field) ? { $ref: `#/definitions/${key}` } : fieldSchema(field),
      ]),
    ),
    ...(conditions.length > 0 && { allOf: conditions }),
  };
}

/** Both kinds of limits refer to one definition of the combinations of their keys. */
function isRate(mapping) {
  return mapping === 'rate_limit' || mapping === 'rate_limits_item';
}

/** Returns the schema of a key's value. */
function fieldSchema(field) {
  const { about, examples, default: standard } = field;
  return {
    description: about,
    ...planned(field, nullable(field, kindSchema(field))),
    ...(standard !== undefined && { default: standard }),
    ...(examples !== undefined && { examples }),
  };
}

/** Kinds whose words and mappings have no null. */
const NEVER_NULL = ['word', 'unit', 'any'];

/** Returns the schema of a key that may have no value, which then counts as absent. */
function nullable({ required, empty, kind }, schema) {
  if (required !== undefined || empty !== undefined || NEVER_NULL.includes(kind)) return schema;
  if (schema.type === undefined) return { ...schema, anyOf: [...schema.anyOf, { type: 'null' }] };
  const { type, allOf, ...rest } = schema;
  // Conditions of mappings are not for null.
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  const conditions = allOf === undefined ? {} : { if: { type: 'object' }, then: { allOf } };
  return { ...rest, type: [type, 'null'].flat(), ...conditions };
}

/** Returns the schema of a key whose value may come from a plan. */
function planned({ planned: isPlanned }, schema) {
  if (isPlanned === undefined) return schema;
  const value = { $ref: '#/definitions/plan_value' };
  if (schema.anyOf !== undefined) return { ...schema, anyOf: [...schema.anyOf, value] };
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  return { ...schema, type: [schema.type, 'object'].flat(), if: { type: 'object' }, then: value };
}

function kindSchema(field) {
  const { kind, min, max, words, schemaPattern: pattern, maxLength } = field;
  const notEmpty = field.required !== undefined && !field.mayBeEmpty && { minLength: 1 };
  const longest = maxLength !== undefined && { maxLength };
  switch (kind) {
    case 'text':
      if (pattern === undefined) return { type: ANY_TEXT, ...notEmpty, ...longest };
      return { type: 'string', pattern, ...longest };
    case 'name':
      // Names that must not be digits cannot be numbers either.
      if (field.noDigits)
        return { type: ['string', 'boolean'], not: { type: 'string', pattern: '^[0-9]+$' } };
      return { type: ['string', 'integer', 'boolean'], ...notEmpty, maximum: MAX_NAME };
    case 'flag':
      return field === POLICY_FIELDS.on_over.allow ? { const: true } : { type: 'boolean' };
    case 'count':
      return { type: 'integer', minimum: min, maximum: max };
    case 'number':
      return { type: 'number', minimum: min, maximum: max };
    case 'duration':
      return { type: 'string', pattern: DURATION };
    case 'time':
      return { type: 'string', pattern: TIME };
    case 'unit':
      return { anyOf: [{ enum: WINDOW_UNITS }, { type: 'string', pattern: anyCase(WINDOW_UNITS) }] };
    case 'word':
      return { enum: words };
    case 'words':
      return { type: 'array', items: { enum: words } };
    case 'word_or_mapping':
      return { anyOf: [words.length === 1 ? { const: words[0] } : { enum: words }, mappingSchema(field.of)] };
    case 'texts':
      return textsSchema(field);
    case 'mapping':
      return mappingSchema(field.of);
    case 'list':
      return {
        type: 'array',
        ...(min !== undefined && { minItems: min }),
        ...(max !== undefined && { maxItems: max }),
        items: field.of in DEFINED ? { $ref: `#/definitions/${DEFINED[field.of]}` } : mappingSchema(field.of),
      };
    default:
      return OTHER_KINDS[kind];
  }
}

function textsSchema({ single, schemaPattern: pattern }) {
  const item = pattern === undefined ? { type: ANY_TEXT, minLength: 1 } : { type: 'string', pattern };
  const list = { type: 'array', minItems: 1, uniqueItems: true, items: item };
  return single ? { anyOf: [item, list] } : list;
}

const OTHER_KINDS = {
  metadata: { type: 'object' },
  key_table: {
    type: 'object',
    propertyNames: { pattern: DIGEST },
    additionalProperties: { type: ANY_TEXT, minLength: 1, not: { type: 'string', pattern: '^sha256:' } },
  },
  headers: {
    type: 'array',
    maxItems: MAX_HEADERS,
    items: {
      type: 'object',
      minProperties: 1,
      additionalProperties: { type: ANY_TEXT, maxLength: MAX_HEADER_LENGTH },
    },
  },
  plan_values: {
    type: 'object',
    additionalProperties: { type: 'object', additionalProperties: { type: [...ANY_TEXT, 'null'] } },
  },
  kept_hits: {
    type: 'object',
    minProperties: 1,
    maxProperties: MAX_CLASSES,
    propertyNames: { minLength: 1 },
    additionalProperties: {
      anyOf: [
        { type: 'integer', minimum: 0, maximum: 2 ** 32 - 1 },
        { type: 'string', pattern: SHARE },
      ],
    },
  },
  any: { type: [...ANY_TEXT, 'null'] },
};

/** Returns the condition of a constraint; see Constraint in src/config/read/field.ts. */
function constraint({ key, is, unless, excludes = [], needs = {}, minimum = {} }) {
  const excluded = Array.isArray(excludes) ? excludes : Object.keys(excludes);
  const properties = [
    ...Object.entries(needs).map(([other, value]) => [other, { const: value }]),
    ...Object.entries(minimum).map(([other, least]) => [other, { minimum: least }]),
  ];
  return {
    if: {
      ...(is === undefined ? { required: [key] } : equals(key, is)),
      ...(unless !== undefined && { not: { required: [unless] } }),
    },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: {
      ...(excluded.length > 0 && none(excluded)),
      ...(Object.keys(needs).length > 0 && { required: Object.keys(needs) }),
      ...(properties.length > 0 && { properties: Object.fromEntries(properties) }),
    },
  };
}

function equals(key, value) {
  return { required: [key], properties: { [key]: { const: value } } };
}

function any(keys) {
  return { anyOf: keys.map((key) => ({ required: [key] })) };
}

function none(keys) {
  return { not: any(keys) };
}

/** Returns a pattern of words in upper or lower case. */
function anyCase(words) {
  const inAnyCase = (word) => word.replaceAll(/./g, (letter) => `[${letter.toUpperCase()}${letter}]`);
  return `^(?:${words.map(inAnyCase).join('|')})$`;
}
