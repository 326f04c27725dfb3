import { describe, expect, test } from '@jest/globals';
import { formatProblem } from '../../../../src/config/yaml/config-problem.js';
import type { YamlValue } from '../../../../src/config/yaml/yaml-document.js';
import { loadDocuments } from '../../../support/policy/loads.js';
import { statesOf } from '../../../support/policy/policy-dir.js';

describe('documents from elsewhere', () => {
  const at = { line: 0, column: 0 };
  const scalar = (text: string, plain = false): YamlValue => ({ kind: 'scalar', text, plain, at });
  const map = (fields: Readonly<Record<string, YamlValue>>): YamlValue => ({
    kind: 'map',
    at,
    fields: new Map(
      Object.entries(fields).map(([key, value], index) => [
        key,
        { key, keyAt: at, index, shown: true, value },
      ]),
    ),
  });
  const list = (...items: YamlValue[]): YamlValue => ({ kind: 'list', items, at });
  const document = (unit: string, requests = '5'): YamlValue =>
    map({
      domain: scalar('d'),
      descriptors: list(
        map({
          key: scalar('k'),
          rate_limit: map({ unit: scalar(unit), requests_per_unit: scalar(requests, true) }),
        }),
      ),
    });

  test('have the default algorithm', () => {
    const documents = [{ name: 'config', document: document('day') }];
    const { policySet } = loadDocuments(documents, { defaultAlgorithm: 'token_bucket' });
    expect(policySet.domains.get('d')).toMatchObject({
      overrideAlgorithm: 'token_bucket',
      rules: [{ rate: { kind: 'token_bucket', maxTokens: 5, fillIntervalMicros: 86_400_000_000 } }],
    });
  });

  test('are compiled like files', () => {
    const loaded = loadDocuments([{ name: 'config', document: document('day') }]);
    expect(statesOf(loaded)).toEqual(['d: ok 5']);
    expect(loaded.files).toEqual(['config']);
    expect(loadDocuments([{ name: 'config', document: document('day') }]).policySet.version).toBe(
      loaded.policySet.version,
    );
    expect(loadDocuments([{ name: 'config', document: document('day', '6') }]).policySet.version).not.toBe(
      loaded.policySet.version,
    );
  });

  test('errors name the resource and the path', () => {
    const before = loadDocuments([{ name: 'config', document: document('day') }]);
    const loaded = loadDocuments([{ name: 'config', document: document('fortnight') }], {}, before);
    expect(loaded.errors.map(formatProblem)).toEqual([
      'config: descriptors[0].rate_limit.unit: "fortnight" is not a valid unit; write one of second, ' +
        'minute, hour, day, week, month, year',
    ]);
    expect(statesOf(loaded)).toEqual(['d: kept 5']);
  });

  test('of one domain are merged if configured', () => {
    const other = map({ domain: scalar('d'), descriptors: list(map({ key: scalar('j') })) });
    const documents = [
      { name: 'b', document: document('day') },
      { name: 'a', document: other },
    ];
    expect(statesOf(loadDocuments(documents, { mergeDomains: true }))).toEqual(['d: ok 5']);
    expect(loadDocuments(documents).errors.map(formatProblem)).toEqual([
      'a: domain: the domain "d" is already defined in b, so neither file is loaded; define each domain ' +
        'in only one file, or set MERGE_DOMAIN_CONFIG=true',
    ]);
  });

  test('cannot refer to files', () => {
    const derive = list(
      map({ entry: scalar('t'), from: list(scalar('api_key')), sha256_file: scalar('/etc/passwd') }),
    );
    const loaded = loadDocuments([{ name: 'r', document: map({ domain: scalar('d'), derive }) }]);
    expect(loaded.errors.map(formatProblem)).toEqual([
      'r: derive[0].sha256_file: "/etc/passwd" is not read, because the policy does not come from a ' +
        'file; write its content into the policy',
    ]);
  });
});
