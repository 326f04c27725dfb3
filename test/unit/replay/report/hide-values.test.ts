import { expect, test } from '@jest/globals';
import { hideValues, valueHider } from '../../../../src/replay/report/hide-values.js';
import { group, interval, rule, sampleReport } from '../../../support/replay/sample-report.js';

const NO_SECRETS: ReadonlySet<string> = new Set();

test('credentials and secret keys are redacted, and other values are not', () => {
  const hide = valueHider(new Set(['badge']), false);
  expect(hide({ key: 'tenant' }, 'acme')).toBe('acme');
  expect(hide({ key: 'API_KEY' }, 'k')).toMatch(/^\[redacted sha256:[\da-f]{8}\]$/);
  expect(hide({ key: 'rule-0-match-0', source: 'authorization' }, 'k')).toMatch(/^\[redacted/);
  expect(hide({ key: 'badge' }, 'k')).toBe(hide({ key: 'API_KEY' }, 'k'));
});

test('hashes are the same within a run, and different in another run', () => {
  const [hide, other] = [valueHider(NO_SECRETS, true), valueHider(NO_SECRETS, true)];
  expect(hide({ key: 'tenant' }, 'acme')).toMatch(/^hash-[\da-f]{12}$/);
  expect(hide({ key: 'tenant' }, 'acme')).toBe(hide({ key: 'tenant' }, 'acme'));
  expect(hide({ key: 'tenant' }, 'acme')).not.toBe(hide({ key: 'tenant' }, 'globex'));
  expect(hide({ key: 'tenant' }, 'acme')).not.toBe(other({ key: 'tenant' }, 'acme'));
  expect(hide({ key: 'api_key' }, 'k')).toMatch(/^\[redacted/);
});

test('the anonymised report contains no value', () => {
  const { log } = sampleReport();
  const report = sampleReport({
    log: { ...log, unreadable: [{ reason: 'is not JSON', lines: 1, example: '{"tenant":"acme"' }] },
    rules: [
      rule({ rule: 'tenant=acme/path=/acme[daily]' }),
      rule({ rule: 'name~acme.*' }),
      rule({ rule: 'ip in 192.0.2.0/24' }),
      rule({ rule: 'tenant/path' }),
    ],
    groups: { by: 'tenant', count: 2, affected: interval(1), shown: [group('acme', 5, interval(1))] },
  });
  const hidden = hideValues(report, valueHider(NO_SECRETS, true), true);
  expect(JSON.stringify(hidden)).not.toMatch(/acme|192\.0/);
  const hash = expect.stringMatching(/^(?:tenant=|name~|ip in )hash-[\da-f]{12}$/);
  expect(hidden.rules.map((each) => each.rule)).toEqual([hash, hash, hash, 'tenant/path']);
});

test('long tokens in unreadable lines are never shown', () => {
  const { log } = sampleReport();
  const example = '{"time":"2026-11-25T10:00:00Z","key":"sk-4bf92f3577b34da6a3ce929d0e0e4736","path":"/a"';
  const report = sampleReport({ log: { ...log, unreadable: [{ reason: 'cut', lines: 1, example }] } });
  const [lines] = hideValues(report, valueHider(NO_SECRETS, false), false).log.unreadable;
  expect(lines?.example).toBe('{"time":"2026-11-25T10:00:00Z","key":"[…]","path":"/a"');
});
