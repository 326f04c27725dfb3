import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { phaseAt } from '../../../../src/policy/rule.js';
import { policyText } from '../../../../src/replay/suggest/policy-text.js';
import {
  DEFAULT_SUGGEST_OPTIONS,
  type Demand,
  type SuggestOptions,
  suggestLimits,
} from '../../../../src/replay/suggest/suggest.js';
import { entries, policyOf } from '../../../support/policy/policies.js';
import { loadedRules, suggested } from '../../../support/replay/suggested.js';

const OPTIONS: SuggestOptions = { ...DEFAULT_SUGGEST_OPTIONS, by: 'tenant' };
const MONDAY = Date.parse('2026-11-02T08:00:00Z') / 1000;
const HOUR = 3600;

function demand(seconds: number, descriptor: readonly string[], hits = 1): Demand {
  return { startMicros: (MONDAY + seconds) * 1e6, entries: entries(...descriptor), hits };
}

/** Returns requests of callers that each send one every `pause` seconds, in order. */
function steady(
  callers: readonly string[],
  pause: number,
  seconds: number,
  ...more: readonly string[]
): Demand[] {
  const all: Demand[] = [];
  for (let at = 0; at < seconds; at += pause) {
    for (const caller of callers) all.push(demand(at, [`tenant=${caller}`, ...more]));
  }
  return all;
}

const names = (count: number) => Array.from({ length: count }, (_, i) => `t-${i + 1}`);

async function textOf(demands: readonly Demand[], options: Partial<SuggestOptions> = {}): Promise<string> {
  const all = { ...OPTIONS, ...options };
  const text = policyText('shop', await suggested([demands], all), all);
  loadedRules(text);
  return text;
}

async function refusal(demands: readonly Demand[], options: Partial<SuggestOptions> = {}): Promise<string> {
  const suggestion = await suggestLimits([demands], { ...OPTIONS, ...options });
  return 'refused' in suggestion ? suggestion.refused : 'not refused';
}

describe('the suggested policy', () => {
  test('names its basis and the outlier', async () => {
    const all = [
      ...steady(names(20), 10, HOUR, 'path=/orders'),
      ...steady(['bot'], 0.1, HOUR, 'path=/orders'),
    ];
    all.sort((a, b) => a.startMicros - b.startMicros);
    // The example of the manual.
    expect(readFileSync('docs/operate/suggest.md', 'utf8')).toContain(
      `\`\`\`yaml\n${await textOf(all)}\`\`\`\n`,
    );
  });

  test('keeps the structure of descriptors', async () => {
    const all = [
      ...steady(names(3), 10, HOUR),
      ...steady(names(3), 10, HOUR, 'route=a'),
      ...steady(names(3), 20, HOUR, 'route=b'),
      ...names(3).map((tenant) => demand(HOUR, ['method=GET', `tenant=${tenant}`])),
    ];
    const rules = loadedRules(await textOf(all));
    expect([...rules.keys()]).toEqual(['method=GET/tenant', 'tenant', 'tenant/route=a', 'tenant/route=b']);
    for (const { phase } of rules.values()) expect(phaseAt(phase, MONDAY * 1e6)).toBe('monitoring');
  });

  test('says that descriptors without a caller have no limit', async () => {
    const text = await textOf([...steady(names(3), 10, HOUR), demand(HOUR, ['route=a'])]);
    expect(text).toContain('# No limit, because these descriptors have no entry tenant.\n  - key: route\n');
  });

  test('calls a log an hour long if it rounds to an hour', async () => {
    const seconds = (count: number) => steady(names(3), 10, count).concat(demand(count, ['tenant=t-1']));
    const short = 'The log covers less than an hour';
    expect(await textOf(seconds(HOUR - 40))).toContain(short);
    const text = await textOf(seconds(HOUR - 20));
    expect(text).toContain('a log of 60 minutes');
    expect(text).not.toContain(short);
  });

  test('has a daily limit if the log covers a day', async () => {
    const all = steady(names(12), 600, 50 * HOUR);
    const text = await textOf(all, { daily: true });
    // 144 requests a day, and a fifth more.
    expect(text).toContain('- { name: daily, unit: day, requests_per_unit: 200 }');
    expect(text).toContain('Most requests of a caller in a day: p50 144, p90 144, p99 144.');
    expect(await textOf(steady(names(12), 600, 20 * HOUR), { daily: true })).toContain(
      'No daily limit, because the log covers less than a day.',
    );
  });

  test('names the hours that the log does not contain', async () => {
    const weekdays = steady(names(12), HOUR / 2, 5 * 24 * HOUR).filter(({ startMicros }) => {
      const hour = new Date(startMicros / 1000).getUTCHours();
      return hour >= 6 && hour < 22;
    });
    expect(await textOf(weekdays)).toContain(
      'Not seen (UTC): Mon 00:00-08:00, 22:00-24:00; Tue-Fri 00:00-06:00',
    );
  });

  test('counts hits', async () => {
    const all = names(12).flatMap((tenant) => [
      demand(0, [`tenant=${tenant}`], 500),
      demand(60, [`tenant=${tenant}`], 0),
    ]);
    const text = await textOf(all);
    expect(text).toContain('Based on 12 requests with 6,000 hits of 12 callers');
    expect(text).toContain('max_tokens: 600,');
  });

  test('contains no secrets, and loads with any value', async () => {
    const key = 'sk-live-4f3GTq9XbLw27Zx';
    const hostile = ['a\nb: c', '# d', '"', "'", '*', '\u202e', 'null', 'yes', '{', ' '];
    const all = [
      ...steady(names(20), 10, HOUR, `api_key=${key}`, 'on=yes'),
      ...steady([key, 'x\ny'], 0.1, HOUR, `api_key=${key}`, 'on=yes'),
      ...hostile.flatMap((value) => steady(names(2), 600, HOUR, `path=${value}`)),
    ];
    const text = await textOf(all);
    expect(text).not.toContain(key);
    expect(text).toContain('- [redacted sha256:');
    expect(text).toContain("- $'x\\U0000000ay': about");
    expect([...loadedRules(text).keys()]).toHaveLength(1 + hostile.length);
  });

  test('matches exactly the logged values, also those with characters that are special in policies', async () => {
    const special = [
      '/a/*',
      '*',
      '**',
      '/a.b*+?(c)[d]{1}|^$\\',
      '~',
      '~/v1',
      '10.0.0.0/8',
      '#',
      '- a',
      '!!str',
      '&x',
    ];
    const long = 'x'.repeat(1025);
    const [group = '', other = ''] = [`${'*'.repeat(400)}`, '/a/other'];
    const all = [...special, long, group, other].flatMap((value) =>
      steady(names(2), 600, HOUR, `path=${value}`),
    );
    // The policy loads with warnings, because some values look like blocks or regular expressions.
    const text = policyText('shop', await suggested([all], OPTIONS), OPTIONS);
    expect(text).toContain('value_regex: "/a/\\\\*"');
    expect(text).not.toContain(long);
    const policy = policyOf(text);
    for (const value of [...special, other]) {
      const { rules } = policy.match(entries('tenant=a', `path=${value}`));
      const { rules: others } = policy.match(entries('tenant=a', `path=${value}x`));
      expect({ value, same: rules[0] === others[0] }).toEqual({ value, same: false });
      expect(rules).toHaveLength(1);
    }
  });

  test('passes a smaller share of callers if asked', async () => {
    const all = names(100).flatMap((tenant, i) =>
      Array.from({ length: i + 1 }, () => demand(i, [`tenant=${tenant}`])),
    );
    expect(await textOf(all, { share: 0.8, headroom: 0 })).toContain(
      'Would have denied requests of 20 of 100 callers.',
    );
    expect(await textOf(all, { share: 1, headroom: 0 })).toContain('max_tokens: 100,');
  });
});

describe('a suggestion is refused', () => {
  test('for too many callers', async () => {
    expect(await refusal(steady(names(4), 10, 10), { maxCallers: 3 })).toBe(
      'the log has more than 3 values of "tenant", counted for each route; name an entry with fewer values with ' +
        '--by, or pass the log of fewer routes',
    );
  });

  test('for too many routes', async () => {
    const all = names(5).map((name) => demand(0, ['tenant=a', `path=/${name}`]));
    expect(await refusal(all, { maxNodes: 4 })).toBe(
      'the descriptors have more than 4 combinations of entries, and "path" has 4 values; leave this entry out of ' +
        'the descriptors, or group its values with derive',
    );
  });

  test('without the entry that names callers', async () => {
    expect(await refusal([demand(0, ['path=/'])])).toBe(
      'the log has 1 descriptor, but none with the entry "tenant"; name another entry with --by: path',
    );
    expect(await refusal([])).toBe(
      'the log has no requests that make a descriptor, so no limit can be suggested',
    );
  });
});

test('a clock that is set back does not look like a burst', async () => {
  const before = steady(names(12), 1, HOUR);
  const after = steady(names(12), 1, HOUR).map((one) => ({ ...one, startMicros: one.startMicros - 600e6 }));
  const again = { ...OPTIONS, headroom: 0 };
  const suggestion = await suggested([before, after], again);
  const [limit] = [...suggestion.limits.values()];
  expect(suggestion.clockSteps).toBe(1);
  expect([limit?.rate.count, limit?.rate.unit]).toEqual([1, 'second']);
  expect(limit?.burst).toBeLessThan(15);
});

test('a single late request does not change the clock', async () => {
  const all = steady(names(12), 1, HOUR);
  const late = demand(100, ['tenant=t-1']);
  const suggestion = await suggested([all.slice(0, 12_000), [late], all.slice(12_000)], {
    ...OPTIONS,
    headroom: 0,
  });
  const [limit] = [...suggestion.limits.values()];
  expect([suggestion.clockSteps, limit?.rate.count, limit?.burst]).toEqual([0, 1, 2]);
});
