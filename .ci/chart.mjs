// Generates parts of the Helm chart from the source: the schema of `settings`, and the table of values in the README.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { root } from './shell.mjs';

const CHART = join(root, 'deploy/helm/weir');
export const SCHEMA = 'deploy/helm/weir/values.schema.json';
export const PAGE = 'deploy/helm/weir/README.md';

const WHOLE = '^\\+?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|[0-9][0-9_]*)?$';
const BOOLEANS = ['1', 't', 'T', 'true', 'TRUE', 'True', '0', 'f', 'F', 'false', 'FALSE', 'False'];
const ANY_BOOLEAN = `(${BOOLEANS.join('|')})`;
const MAX_SAFE = Number.MAX_SAFE_INTEGER;

const whole = (minimum, maximum) => ({
  type: ['integer', 'string', 'null'],
  pattern: WHOLE,
  minimum,
  maximum,
});
const duration = {
  type: ['string', 'null'],
  pattern: '^(\\+?(0|(([0-9]+\\.?[0-9]*|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+))?$',
};
/** Helm's regular expressions have no lookahead. */
const aboveZero = { ...duration, allOf: [{ pattern: '^$|[1-9]' }] };

/** Returns the schema of text that matches a pattern. An absent value or '' means unset. */
const textLike = (pattern) => ({ type: ['string', 'null'], pattern: `^(${pattern})?$` });

/** Returns the schema of one of a few words. JSON schema has no patterns that ignore the case. */
function choice({ words, inAnyCase }) {
  if (!inAnyCase) return { enum: [null, '', ...words.filter((word) => word !== '')] };
  const inCases = (letter) => `[${letter.toLowerCase()}${letter.toUpperCase()}]`;
  return textLike(words.map((word) => word.replaceAll(/[a-z]/gi, inCases)).join('|'));
}

/** Returns the schema of pairs such as `name:value,name:value`, or `name=value` in a pair without the separator. */
function pairs(separator, other) {
  const both = separator + other;
  const pair =
    `([^,${separator}]*[^,${separator}\\s][^,${separator}]*${separator}[^,]*` +
    `|[^,${both}]*[^,${both}\\s][^,${both}]*${other}[^,${separator}]*)`;
  return textLike(`${pair}(,${pair})*`);
}

const SHARE = '\\s*(denied|ok)\\s*[=:]\\s*(0+\\.?0*|0*\\.[0-9]+|0*1\\.?0*)\\s*';

/**
 * Type of a setting → schema of its YAML value. Types that are not listed are text. An absent value or '' means unset.
 */
const FORMS = {
  boolean_list: () => ({
    type: ['boolean', 'string', 'null'],
    pattern: `^(${ANY_BOOLEAN}(, *${ANY_BOOLEAN})*)?$`,
  }),
  boolean: () => ({ enum: [true, false, 1, 0, null, '', ...BOOLEANS] }),
  port: () => whole(0, 65_535),
  count: (max = MAX_SAFE) => whole(1, max),
  integer: (max = MAX_SAFE) => whole(0, max),
  optional_integer: (max = MAX_SAFE) => whole(0, max),
  number: (max = MAX_SAFE) => ({
    type: ['number', 'string', 'null'],
    pattern: '^(\\+?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?)?$',
    minimum: 0,
    maximum: max,
  }),
  duration: () => duration,
  optional_duration: () => duration,
  timeout: () => aboveZero,
  optional_timeout: () => aboveZero,
  string_map: () => pairs(':', '='),
  metadata_map: () => pairs('=', ':'),
  decision_sample: () => textLike(`${SHARE}(,${SHARE})?`),
};

/** Returns the schema of `settings`, which allows only known variables. */
function settingsSchema(settings, inertVariables, choices) {
  const properties = {};
  for (const { name, type, max, help, default: value } of settings) {
    const description = value === '' ? help : `${help} Default: ${value}`;
    const form = choices[type] === undefined ? FORMS[type]?.(max) : choice(choices[type]);
    properties[name] = { description, ...(form ?? { type: ['string', 'null'] }) };
  }
  for (const { name, reason } of inertVariables) {
    properties[name] = { description: `No effect: ${reason}`, type: ['string', 'number', 'null'] };
  }
  return {
    description: "weir's own variables, by name. An unknown name is an error.",
    type: 'object',
    additionalProperties: false,
    patternProperties: {
      '^DOG_STATSD_MOGRIFIER_[A-Z0-9_]+_(PATTERN|NAME|TAGS)$': { type: ['string', 'null'] },
    },
    properties,
  };
}

/** Maximum length of a line, as in .biome.json. */
const LINE_WIDTH = 110;

/**
 * Formats JSON like the formatter: one member per line in objects, and lists of plain values on one line if they fit.
 * `before` is the number of characters on the line before the value.
 */
export function print(value, indent = '', before = 0) {
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    const line = inLine(value);
    // A comma may follow.
    if (line !== undefined && before + line.length < LINE_WIDTH) return line;
    return `[\n${value.map((item) => inner + print(item, inner, inner.length)).join(',\n')}\n${indent}]`;
  }
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).map(([name, one]) => {
    const key = `${inner}${JSON.stringify(name)}: `;
    return key + print(one, inner, key.length);
  });
  return members.length === 0 ? '{}' : `{\n${members.join(',\n')}\n${indent}}`;
}

/** Returns a plain value, or a list of them, in one line; undefined if it has objects. */
function inLine(value) {
  if (!Array.isArray(value))
    return typeof value === 'object' && value !== null ? undefined : JSON.stringify(value);
  const items = value.map(inLine);
  return items.includes(undefined) ? undefined : `[${items.join(', ')}]`;
}

/** Returns the text of values.schema.json with the current schema of `settings`. */
export function schemaText(settings, inertVariables, choices) {
  const schema = JSON.parse(readFileSync(join(root, SCHEMA), 'utf8'));
  schema.properties.settings = settingsSchema(settings, inertVariables, choices);
  return `${print(schema)}\n`;
}

/** Returns a table of all values of the chart, with defaults and meanings. `settings` is one row. */
export function valuesTable() {
  const schema = JSON.parse(readFileSync(join(root, SCHEMA), 'utf8'));
  const values = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8'));
  const rows = [];
  const add = (path, { properties, description }, value) => {
    if (properties !== undefined && path !== 'settings') {
      for (const [name, one] of Object.entries(properties)) {
        add(path === '' ? name : `${path}.${name}`, one, value?.[name]);
      }
    } else if (path !== 'global') {
      rows.push(
        `| \`${path}\` | \`${JSON.stringify(value ?? null)}\` | ${description.replaceAll('|', '\\|')} |`,
      );
    }
  };
  add('', schema, values);
  return ['| value | default | meaning |', '|---|---|---|', ...rows].join('\n');
}
