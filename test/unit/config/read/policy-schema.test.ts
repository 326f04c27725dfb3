import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse as parseYaml } from 'yaml';
import type { MappingName } from '../../../../src/config/read/field.js';
import {
  keysOf as listedKeys,
  REQUEST_HEADER_FAMILIES,
  RESPONSE_HEADER_FAMILIES,
} from '../../../../src/config/read/policy-fields.js';
import { MIN_SHARE, STORE_FAILURE_POLICIES } from '../../../../src/limiter/failure-policy.js';
import { MAX_UINT32 } from '../../../../src/limiter/rate-algorithm.js';
import { WINDOW_UNITS } from '../../../../src/limiter/window-unit.js';
import { ALGORITHMS } from '../../../../src/policy/policy.js';
import { HOLD_SOURCES, PHASES, UNKNOWN_USES } from '../../../../src/policy/rule.js';
import { manualPages, pageText } from '../../../support/docs/pages.js';
import {
  accepts,
  resolved,
  SCHEMA_PATH,
  type SchemaPart,
  schema,
  schemaErrors,
} from '../../../support/policy/policy-schema.js';
import { repositoryRoot } from '../../../support/process/tools.js';

const definition = (name: string): SchemaPart => resolved({ $ref: `#/definitions/${name}` });
const keysOf = (part: SchemaPart): readonly string[] => Object.keys(part.properties ?? {});

/** Returns every mapping of the schema with known keys, by its path. */
function mappings(part: SchemaPart, place: string): readonly (readonly [string, SchemaPart])[] {
  if (typeof part !== 'object' || part === null) return [];
  const below = Object.entries(part).flatMap(([key, value]) =>
    mappings(value as SchemaPart, `${place}/${key}`),
  );
  return part.additionalProperties === undefined ? below : [[place, part], ...below];
}

describe('the schema', () => {
  const mappingOf = (part: SchemaPart): SchemaPart =>
    part.anyOf?.find(({ properties }) => properties !== undefined) ?? part.items ?? part;
  const deriveItem = definition('derive_item');
  const places: Readonly<Record<MappingName, SchemaPart>> = {
    file: schema,
    descriptor: definition('node'),
    rate_limit: definition('rate_limit'),
    rate_limits_item: definition('rate_limits_item'),
    token_bucket: definition('token_bucket'),
    concurrency: definition('concurrency'),
    hold: definition('hold'),
    priorities: definition('priorities'),
    lease: definition('lease'),
    replaced_rule: mappingOf(definition('replaces')),
    denied_response: mappingOf(definition('denied_response')),
    on_over: definition('on_over'),
    phase_schedule: mappingOf(definition('phase')),
    local_share: mappingOf(definition('on_store_failure')),
    plans: definition('plans'),
    plan_value: definition('plan_value'),
    derive_item: deriveItem,
    derive_rule: mappingOf(resolved(deriveItem.properties?.['rules'] as SchemaPart)),
  };

  test.each(Object.entries(places))("has the loader's keys of a %s", (name, part) => {
    expect([...keysOf(part)].sort()).toEqual([...listedKeys(name as MappingName)].sort());
  });

  test("has the loader's words and bounds", () => {
    const [phases] = definition('phase').anyOf ?? [];
    expect(phases?.enum).toEqual(PHASES);
    const [units] = definition('unit').anyOf ?? [];
    expect(units?.enum).toEqual(WINDOW_UNITS);
    const [failurePolicies] = definition('on_store_failure').anyOf ?? [];
    expect(failurePolicies?.enum).toEqual(STORE_FAILURE_POLICIES);
    expect(mappingOf(definition('on_store_failure')).properties?.['local']).toMatchObject({
      minimum: MIN_SHARE,
      maximum: 1,
    });
    expect(definition('algorithm').enum).toEqual(ALGORITHMS);
    for (const name of ['max_tokens', 'tokens_per_fill']) {
      expect(definition('token_bucket').properties?.[name]).toMatchObject({
        minimum: 1,
        maximum: MAX_UINT32,
      });
    }
    expect(definition('concurrency').properties?.['max']).toMatchObject({ minimum: 1, maximum: MAX_UINT32 });
    expect(definition('hold').properties?.['from']?.enum).toEqual(HOLD_SOURCES);
    expect(definition('hold').properties?.['unknown']?.enum).toEqual(UNKNOWN_USES);
    expect(definition('response_headers').items?.enum).toEqual(RESPONSE_HEADER_FAMILIES);
    expect(definition('request_headers').items?.enum).toEqual(REQUEST_HEADER_FAMILIES);
    expect(definition('requests_per_unit')).toMatchObject({ minimum: 0, maximum: MAX_UINT32 });
  });

  test('refuses unknown keys, and describes the known ones', () => {
    const found = mappings(schema, '');
    expect(found.length).toBeGreaterThan(8);
    for (const [place, part] of found) {
      if (typeof part.additionalProperties === 'object') continue;
      expect([place, part.additionalProperties]).toEqual([place, false]);
      for (const [key, property] of Object.entries(part.properties ?? {})) {
        expect([place, key, resolved(property).description ?? '']).toEqual([
          place,
          key,
          expect.stringMatching(/\.$/),
        ]);
      }
    }
  });

  test('contains examples that are valid', () => {
    const visit = (part: SchemaPart): void => {
      if (typeof part !== 'object' || part === null) return;
      for (const example of part.examples ?? []) {
        const { examples: _, ...rest } = part;
        expect([example, accepts(rest, example)]).toEqual([example, true]);
      }
      for (const [key, below] of Object.entries(part)) if (key !== 'examples') visit(below as SchemaPart);
    };
    visit(schema);
  });
});

/** YAML files with a domain, which are policies. */
const policyFiles = readdirSync(join(repositoryRoot, 'deploy'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /\.ya?ml$/.test(entry.name))
  .map((entry) => join(entry.parentPath, entry.name))
  .filter((file) => /^domain:/m.test(readFileSync(file, 'utf8')));

describe('shipped policies', () => {
  test('are found', () => {
    expect(policyFiles.length).toBeGreaterThanOrEqual(3);
  });

  test.each(policyFiles.map((file) => file.slice(repositoryRoot.length + 1)))(
    "%s contains the schema's name and matches the schema",
    (name) => {
      const file = join(repositoryRoot, name);
      const text = readFileSync(file, 'utf8');
      const [, path = ''] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(text) ?? [];
      expect(resolve(dirname(file), path)).toBe(join(repositoryRoot, SCHEMA_PATH));
      expect(schemaErrors(text)).toEqual([]);
    },
  );

  test('no policy directory contains the schema, which would be read as a policy', () => {
    expect(existsSync(join(repositoryRoot, 'deploy/policies/policy.schema.json'))).toBe(false);
  });

  test('ConfigMaps contain policies that match the schema', () => {
    const { data } = parseYaml(
      readFileSync(join(repositoryRoot, 'deploy/kubernetes/policies.yaml'), 'utf8'),
    ) as {
      data: Record<string, string>;
    };
    for (const text of Object.values(data)) expect(schemaErrors(text)).toEqual([]);
  });

  test('policies in the manual match the schema', () => {
    const blocks = manualPages().flatMap((page) =>
      [...pageText(page).matchAll(/^```yaml\n(.*?)^```/gms)].map(([, block = '']) => block),
    );
    const policies = blocks
      .filter((block) => block.startsWith('# example: ') || /^domain:/m.test(block))
      // The map of a log also has a domain.
      .filter((block) => !block.startsWith('# file: map.yaml\n'));
    expect(policies.length).toBeGreaterThan(0);
    for (const text of policies) {
      // An example marked as wrong must be invalid.
      if (/ # wrong$/m.test(text)) expect(schemaErrors(text)).not.toEqual([]);
      else expect([text, schemaErrors(text)]).toEqual([text, []]);
    }
  });
});
