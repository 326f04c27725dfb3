/* Checks `settings` of deploy/helm/weir/values.schema.json: every variable with its valid values. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import Ajv from 'ajv';
import { SETTINGS, VARIABLES } from '../../../../src/server/settings/settings-table.js';
import { parseValue } from '../../../../src/server/settings/settings-values.js';
import { repositoryRoot } from '../../../support/process/tools.js';

const path = join(repositoryRoot, 'deploy/helm/weir/values.schema.json');
const { settings: schema } = JSON.parse(readFileSync(path, 'utf8')).properties;
const validate = new Ajv({ allowUnionTypes: true, strictTypes: false }).compile(schema);
const accepts = (name: string, value: unknown): boolean => validate({ [name]: value });

test('has every variable, and no other', () => {
  expect(Object.keys(schema.properties).sort()).toEqual(VARIABLES.map(({ name }) => name).sort());
  expect(accepts('REDIS_ULR', 'redis:6379')).toBe(false);
  expect(accepts('DOG_STATSD_MOGRIFIER_TIMES_PATTERN', '^time')).toBe(true);
  expect(accepts('DOG_STATSD_MOGRIFIER_TIMES_PATERN', '^time')).toBe(false);
});

const TEXTS = [
  ...['', '0', '1', '+7', '0x1F', '0b101', '0o17', '017', '1_000', '65535', '0.5', '.5', '1e3', '1.'],
  ...['true', 'T', 'False', '10s', '1h30m', '1.5s', '150ms', '0', '5us', '5µs', '2ns', '+2s', 'redis:6379'],
];
const NOT_ANY = ['-1', '-1s', 'yes', 'ten', '1 s', '10 seconds', '1,5', '0.5.5', 's', '--'];
const WORDS = [
  ...[
    'loud',
    'info',
    'Info',
    'WARNING',
    'JSON',
    'text ',
    'h2',
    'H2',
    'grpc-js',
    'kernel',
    'http',
    'grpc',
    'FILE',
  ],
  ...['file', 'redis', 'memcache', 'tcp', 'unix', 'Cluster', 'sentinel', 'token_bucket', 'Fixed_Window'],
  ...['a:b', 'a=b', 'a=b:c', ':b', '=b', ' :b', 'a:b,', 'a:b,c:d', 'a:b,c', ', a:b', 'a b=c:d'],
  ...['denied=1', 'ok=0.01,denied=1', ' ok : .5 ', 'ok=1.5', 'ok=', 'ok=1,', 'denied=1.0', 'ok=00.5', 'ok=2'],
];

describe.each(SETTINGS.map((setting) => [setting.name, setting] as const))(
  '%s',
  (name, { type, max, default: value }) => {
    test('accepts the same text as weir', () => {
      const refused = [value, ...TEXTS].filter((text) => text === '' || parseValue(type, text, max).ok);
      expect(refused.filter((text) => !accepts(name, text))).toEqual([]);
      expect(accepts(name, null)).toBe(true);
    });

    test('refuses the same text as weir, except for free text', () => {
      if (type === 'string' || type === 'string_list') return;
      const texts = [...TEXTS, ...NOT_ANY, ...WORDS];
      const isGood = (text: string): boolean => text === '' || parseValue(type, text, max).ok;
      const differs = texts.filter((text) => isGood(text) !== accepts(name, text));
      // A schema cannot bound the value of a number that is text, and numbers have too many forms for a pattern.
      const isNumeric = /^(?:port|count|integer|optional_integer|number)$/.test(type);
      expect(differs.filter((text) => !isNumeric || !/^[+\d.]/.test(text))).toEqual([]);
    });

    test('accepts YAML numbers and booleans only if weir accepts their text', () => {
      for (const one of [true, false, 0, 1, 8081, 0.5, -1, 70_000, 2 ** 60]) {
        if (accepts(name, one)) expect([one, parseValue(type, String(one), max).ok]).toEqual([one, true]);
      }
    });
  },
);

test.each(['boolean', 'port', 'count', 'integer', 'number', 'duration'] as const)(
  'what is not a %s is refused, as weir does',
  (type) => {
    const setting = SETTINGS.find((one) => one.type === type);
    const wrong = NOT_ANY.filter((text) => !parseValue(type, text).ok);
    expect(wrong.length).toBeGreaterThan(5);
    expect(wrong.filter((text) => accepts(setting?.name ?? '', text))).toEqual([]);
  },
);
