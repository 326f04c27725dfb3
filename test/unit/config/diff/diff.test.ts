import { describe, expect, test } from '@jest/globals';
import type { PolicyChange } from '../../../../src/config/diff/change.js';
import { diffPolicies } from '../../../../src/config/diff/diff-policies.js';
import { cases } from '../../../support/assert/cases.js';
import { setOf } from '../../../support/policy/policies.js';

/** 2026-01-01. */
const NOW = Date.UTC(2026, 0, 1) * 1000;

const changesOf = (before: string, after: string): readonly PolicyChange[] =>
  diffPolicies(setOf(before), setOf(after), NOW);

/** `path: effect: text`, with ` !` after an effect other than `tightens` if the change tightens. */
const linesOf = (before: string, after: string): readonly string[] =>
  changesOf(before, after).map(
    ({ path, effect, tightens, text }) =>
      `${path}: ${effect}${tightens && effect !== 'tightens' ? ' !' : ''}: ${text}`,
  );

const file = (descriptors: string, top = ''): string => `domain: d\n${top}\ndescriptors: [${descriptors}]\n`;
const limited = (limit: string, more = ''): string => file(`{ key: k, ${more} rate_limit: { ${limit} } }`);
const MINUTE = 'unit: minute, requests_per_unit: 10';

describe('a limit', () => {
  test.each(cases`
    ${MINUTE}
      unit: minute, unit_multiplier: 5, requests_per_unit: 10
      tightens: 10 per minute becomes 10 per 5 minutes; the two limits cannot be compared
    ${MINUTE}
      ${MINUTE}, algorithm: token_bucket
      tightens: 10 per minute becomes token bucket (10 tokens, 10 every 1m); the two limits cannot be compared
    ${MINUTE}
      ${MINUTE}, algorithm: token_bucket, burst: 20
      tightens: 10 per minute becomes token bucket (20 tokens, 10 every 1m); the two limits cannot be compared
    token_bucket: { max_tokens: 10, fill_interval: 1s }
      token_bucket: { max_tokens: 5, fill_interval: 2s }
      tightens: token bucket (10 tokens, 1 every 1s) becomes token bucket (5 tokens, 1 every 2s); fewer hits at
        once, slower refill
    token_bucket: { max_tokens: 10, fill_interval: 2s }
      token_bucket: { max_tokens: 20, fill_interval: 1s }
      loosens: token bucket (10 tokens, 1 every 2s) becomes token bucket (20 tokens, 1 every 1s); more hits at once,
        faster refill
    token_bucket: { max_tokens: 10, fill_interval: 2s }
      token_bucket: { max_tokens: 10, fill_interval: 1s }
      loosens: token bucket (10 tokens, 1 every 2s) becomes token bucket (10 tokens, 1 every 1s); faster refill;
        buckets in use keep their old time until full, unless "weir bucket reset" fills them
    unit: day, requests_per_unit: 10
      unit: day, requests_per_unit: 10, calendar: Europe/Berlin
      tightens: 10 per day becomes 10 per day of Europe/Berlin; the two limits cannot be compared
    unit: month, requests_per_unit: 10, calendar: Europe/Berlin
      unit: year, requests_per_unit: 120, calendar: Europe/Berlin
      tightens: 10 per month of Europe/Berlin becomes 120 per year of Europe/Berlin; the two limits cannot be
        compared
    unlimited: true => ${MINUTE} => tightens: unlimited becomes 10 per minute; there was no limit
    ${MINUTE} => unlimited: true => loosens: 10 per minute becomes unlimited; there is no longer a limit
    ${MINUTE}
      unit: day, requests_per_unit: 0
      tightens: 10 per minute becomes 0 per day; every request is now denied
    ${MINUTE}
      ${MINUTE}, allow_debt: true
      tightens: 10 per minute becomes 10 per minute, debt up to 10; the two limits cannot be compared
    ${MINUTE}, name: a => ${MINUTE}, name: b => changes: name: "a" becomes "b"
    ${MINUTE}
      ${MINUTE}, on_store_failure: deny
      tightens: on_store_failure: error becomes deny; applies while the store is unavailable
    ${MINUTE}, on_store_failure: local
      ${MINUTE}, on_store_failure: allow
      loosens: on_store_failure: local becomes allow; applies while the store is unavailable
    ${MINUTE}, on_store_failure: local
      ${MINUTE}, on_store_failure: { local: 0.25 }
      tightens: on_store_failure: local becomes { local: 0.25 }; applies while the store is unavailable
    ${MINUTE}, on_store_failure: { local: 0.25 }
      ${MINUTE}, on_store_failure: { local: 0.5 }
      loosens: on_store_failure: { local: 0.25 } becomes { local: 0.5 }; applies while the store is unavailable
    ${MINUTE}, on_store_failure: { local: 0.25 }
      ${MINUTE}, on_store_failure: error
      tightens: on_store_failure: { local: 0.25 } becomes error; applies while the store is unavailable
    ${MINUTE}
      ${MINUTE}, response_headers: [retry-after]
      changes: response_headers: none, unless LIMIT_RESPONSE_HEADERS_ENABLED is set becomes retry-after
    ${MINUTE} => ${MINUTE}, denied_response: problem+json => changes: denied_response is set
  `)('%s -> %s', (before, after, line) => {
    expect(linesOf(limited(before), limited(after))).toEqual([`k: ${line}`]);
    expect(linesOf(limited(before), limited(before))).toEqual([]);
  });

  test.each([
    ['', 'phase: grace_period,', 'loosens: phase: active becomes grace_period'],
    ['phase: monitoring,', 'phase: grace_period,', 'changes: phase: monitoring becomes grace_period'],
    [
      'phase: { active: 2026-03-01T00:00:00Z },',
      'phase: { active: 2026-02-01T00:00:00Z },',
      'tightens: phase: monitoring (active from 2026-03-01T00:00:00.000Z) becomes monitoring (active ' +
        'from 2026-02-01T00:00:00.000Z)',
    ],
    [
      '',
      'quota_mode: true,',
      'tightens: quota_mode: off becomes on; the effect of limits on each other is not compared',
    ],
    ['', 'enforce_percent: 0,', 'loosens: enforce_percent: 100 becomes 0'],
    ['', 'metadata: { secret: x },', 'changes: metadata is set'],
    ['', 'detailed_metric: true,', 'changes: detailed_metric: off becomes on'],
    ['', 'on_unmatched: ignore,', 'changes: on_unmatched: warn becomes ignore; affects only the log'],
  ])('next to it: %s -> %s', (before, after, line) => {
    expect(linesOf(limited(MINUTE, before), limited(MINUTE, after))).toEqual([`k: ${line}`]);
  });

  test('of a rule that cannot deny does not tighten', () => {
    const monitored = (limit: string): string => limited(limit, 'phase: monitoring,');
    expect(linesOf(monitored(MINUTE), monitored('unit: minute, requests_per_unit: 1'))).toEqual([
      'k: changes: 10 per minute becomes 1 per minute; the rule never denies',
    ]);
  });
});

test('on_unmatched is reported where it is written, not at every node below', () => {
  const rules = '{ key: k, descriptors: [{ key: l }] }, { key: own, on_unmatched: warn }';
  const changed = 'changes: on_unmatched: warn becomes ignore; affects only the log';
  expect(linesOf(file(rules), file(rules, 'on_unmatched: ignore'))).toEqual([`: ${changed}`]);
  expect(linesOf(file(rules), file(rules.replace('key: k,', 'key: k, on_unmatched: ignore,')))).toEqual([
    `k: ${changed}`,
  ]);
});

describe('several limits', () => {
  const list = (...items: readonly string[]): string =>
    file(`{ key: k, rate_limits: [${items.map((item) => `{ ${item} }`).join(', ')}] }`);
  const second = 'unit: second, requests_per_unit: 10';
  const day = 'unit: day, requests_per_unit: 250';

  test('one more tightens, and one less loosens', () => {
    expect(linesOf(limited(second), list(second, `${day}, name: daily`))).toEqual([
      'k[1]: loosens: 10 per second becomes 10 per second; denied hits no longer count',
      "k[1]: changes: place: alone becomes item 1 of a list; the rule's bucket starts over",
      'k[daily]: appears !: 250 per day',
    ]);
    expect(linesOf(list(`${second}, name: a`, `${day}, name: b`), list(`${day}, name: b`))).toEqual([
      'k[a]: vanishes: 10 per second',
    ]);
    expect(linesOf(list(second), limited(second))).toEqual([
      'k: tightens: 10 per second becomes 10 per second; denied hits now count as well',
      "k: changes: place: item 1 of a list becomes alone; the rule's bucket starts over",
    ]);
  });

  test('are compared by their index if they have no names, which their buckets have, too', () => {
    expect(linesOf(list(second, day), list(day, second))).toEqual([
      'k[1]: tightens: 10 per second becomes 250 per day; the two limits cannot be compared',
      'k[2]: tightens: 250 per day becomes 10 per second; the two limits cannot be compared',
    ]);
  });

  test('are identified by name, or else by index', () => {
    expect(
      linesOf(list(`${second}, name: a`, `${day}, name: b`), list(`${day}, name: b`, `${second}, name: a`)),
    ).toEqual([]);
    expect(linesOf(list(second, day), list(second, 'unit: day, requests_per_unit: 100'))).toEqual([
      'k[2]: tightens: 250 per day becomes 100 per day; fewer hits per window',
    ]);
    expect(linesOf(list(`${day}, name: a`), list(`${day}, name: b`))).toEqual([
      'k[b]: changes: name: "a" becomes "b"',
      "k[b]: changes: place: item a of a list becomes item b of a list; the rule's bucket starts over",
    ]);
  });
});

test("a node's setting for the nodes below it is a change of each of these nodes", () => {
  const nested = (percent: string): string =>
    file(`{ key: k, ${percent} descriptors: [{ key: a, rate_limit: { ${MINUTE} } }] }`);
  expect(linesOf(nested(''), nested('enforce_percent: 10,'))).toEqual([
    'k/a: loosens: enforce_percent: 100 becomes 10',
  ]);
});

describe('a rule that cannot deny', () => {
  test.each(['shadow_mode: true,', 'phase: monitoring,', 'enforce_percent: 0,'])('%s', (more) => {
    const changes = changesOf(limited('unlimited: true'), limited(MINUTE, more));
    expect(changes.map(({ setting, effect }) => [setting, effect])).toEqual([
      ['limit', 'changes'],
      [more.split(':')[0], 'changes'],
    ]);
    const shared = (share: boolean) =>
      file(`{ key: k, value: a*, share_threshold: ${share}, ${more} rate_limit: { ${MINUTE} } }`);
    expect(changesOf(shared(false), shared(true))).toMatchObject([
      { setting: 'share_threshold', effect: 'changes', tightens: false },
    ]);
  });

  test('can deny from the date in its schedule', () => {
    const later = limited(MINUTE, 'phase: { active: 2030-01-01T00:00:00Z },');
    expect(linesOf(limited('unlimited: true'), later)[0]).toBe(
      'k: tightens: unlimited becomes 10 per minute; there was no limit',
    );
  });
});

describe('rules that suppressed other rules', () => {
  const other = `{ key: a, rate_limit: { name: a, ${MINUTE} } }`;
  const replacing = 'rate_limit: { unlimited: true, replaces: [{ name: a }] }';

  test('tighten when they are removed', () => {
    expect(linesOf(file(`${other}, { key: b, ${replacing} }`), file(other))).toEqual([
      'b: vanishes !: unlimited; now no limit; other limits may now deny more',
    ]);
    expect(linesOf(file(other), file(`${other}, { key: b, ${replacing} }`))).toEqual([
      'b: appears: unlimited; previously no limit',
    ]);
  });

  test('tighten when they lose values to other rules or exempt them', () => {
    const before = file(`${other}, { key: b, ${replacing} }`);
    const after = file(`${other}, { key: b, ${replacing} }, { key: b, value: x }`);
    expect(linesOf(before, after)).toEqual([
      'b=x: appears !: no limit; previously unlimited from rule b; other limits may now deny more',
    ]);
  });

  test('as one limit of a list', () => {
    const list = (items: string) => file(`${other}, { key: b, rate_limits: [${items}] }`);
    const plain = `{ name: plain, ${MINUTE} }`;
    expect(linesOf(list(`${plain}, { name: r, ${MINUTE}, replaces: [{ name: a }] }`), list(plain))).toEqual([
      'b[r]: vanishes !: 10 per minute; other limits may now deny more',
    ]);
  });

  test('tighten, whatever the replaced rules are', () => {
    const watched = other.replace('key: a,', 'key: a, shadow_mode: true,');
    expect(changesOf(file(`${watched}, { key: b, ${replacing} }`), file(watched))).toMatchObject([
      { effect: 'vanishes', tightens: true },
    ]);
    expect(
      changesOf(
        file(`${watched}, { key: b, ${replacing} }`),
        file(`${watched}, { key: b, rate_limit: { unlimited: true } }`),
      ),
    ).toMatchObject([{ setting: 'replaces', effect: 'tightens' }]);
  });

  test('quotas deny only together, so weir does not compare what removing one does', () => {
    const quota = (key: string) => `{ key: ${key}, quota_mode: true, rate_limit: { ${MINUTE} } }`;
    expect(linesOf(file(`${quota('a')}, ${quota('b')}`), file(quota('a')))).toEqual([
      'b: vanishes !: 10 per minute, quota mode; now no limit; other limits may now deny more',
    ]);
    expect(changesOf(file(quota('a')), file(''))).toMatchObject([{ effect: 'vanishes', tightens: true }]);
  });
});

describe('rules that replace others', () => {
  const replacing = (name: string): string =>
    file(
      `{ key: k, rate_limit: { ${MINUTE}, name: ${name} } }, { key: l, rate_limit: { unlimited: true, ` +
        'replaces: [{ name: base }] } }',
    );

  test('a renamed rule is no longer replaced', () => {
    expect(linesOf(replacing('base'), replacing('other'))).toEqual([
      'k: tightens: name: "base" becomes "other"',
    ]);
  });
});

describe('the node that matches a value', () => {
  const any = `{ key: k, rate_limit: { ${MINUTE} } }`;
  const node = (value: string, limit: string): string =>
    `{ key: k, value: "${value}", rate_limit: { ${limit} } }`;

  test('a node for a value takes this value from the node with the key', () => {
    expect(linesOf(file(any), file(`${any}, ${node('vip', 'unlimited: true')}`))).toEqual([
      'k=vip: appears: unlimited; previously 10 per minute from rule k',
    ]);
    expect(linesOf(file(any), file(`${any}, ${node('eve', 'unit: minute, requests_per_unit: 1')}`))).toEqual([
      'k=eve: appears !: 1 per minute; previously 10 per minute from rule k',
    ]);
    expect(linesOf(file(`${any}, ${node('vip', 'unlimited: true')}`), file(any))).toEqual([
      'k=vip: vanishes !: unlimited; now 10 per minute from rule k; other limits may now deny more',
    ]);
  });

  test('rules below a node that takes over its values', () => {
    const below = `{ key: k, descriptors: [{ key: p, rate_limit: { ${MINUTE} } }] }`;
    const vip = node('vip', 'unlimited: true');
    expect(linesOf(file(below), file(`${below}, ${vip}`))).toEqual([
      'k=vip: appears: unlimited; previously no limit at k',
    ]);
    expect(linesOf(file(`${below}, ${vip}`), file(below))).toEqual([
      'k=vip: vanishes !: unlimited; now no limit at k; other limits may now deny more',
    ]);
  });

  test('is not named if several nodes may match', () => {
    const others = `${node('*z', 'unlimited: true')}, ${any}`;
    const changes = (limit: string) => linesOf(file(others), file(`${node('a*', limit)}, ${others}`));
    // A rule that can deny tightens, even if the other nodes denied as much.
    expect(changes(MINUTE)).toEqual(['k=a*: appears !: 10 per minute']);
    expect(changes('unlimited: true')).toEqual(['k=a*: appears: unlimited']);
    expect(linesOf(file(`${node('a*', MINUTE)}, ${others}`), file(others))).toEqual([
      'k=a*: vanishes !: 10 per minute; other limits may now deny more',
    ]);
    const unlimited = others.replace(MINUTE, 'unlimited: true');
    expect(linesOf(file(`${node('a*', MINUTE)}, ${unlimited}`), file(unlimited))).toEqual([
      'k=a*: vanishes: 10 per minute',
    ]);
  });

  test('is never a node with another value, or a node that the key alone adds', () => {
    const exact = node('x', MINUTE);
    expect(linesOf(file(`${exact}, ${node('y', MINUTE)}`), file(exact))).toEqual([
      'k=y: vanishes: 10 per minute; now no limit',
    ]);
    expect(linesOf(file(node('a*', MINUTE)), file(`${node('a*', MINUTE)}, ${any}`))).toEqual([
      'k: appears !: 10 per minute; previously no limit',
    ]);
  });

  test('another order', () => {
    const [a, z] = [node('a*', MINUTE), node('*z', 'unit: minute, requests_per_unit: 1')];
    expect(linesOf(file(`${a}, ${z}`), file(`${z}, ${a}`))).toEqual([
      'k=*z: tightens: now precedes k=a*; other limits may apply to values that match several nodes',
    ]);
  });

  test('blocks of addresses', () => {
    const block = (items: string, limit: string): string =>
      `{ key: k, value_cidr: [${items}], rate_limit: { ${limit} } }`;
    const wide = block('10.0.0.0/8', 'unlimited: true');
    expect(linesOf(file(wide), file(`${wide}, ${block('10.1.0.0/16', MINUTE)}`))).toEqual([
      'k in 10.1.0.0/16: appears !: 10 per minute',
    ]);
    const extended = block('10.0.0.0/8, 192.168.0.0/16', 'unlimited: true');
    expect(linesOf(file(`${wide}, ${any}`), file(`${extended}, ${any}`))).toEqual([
      'k in 10.0.0.0/8,…: tightens: now also matches 192.168.0.0/16; other limits may apply to these values',
    ]);
    expect(linesOf(file(`${extended}, ${any}`), file(`${wide}, ${any}`))).toEqual([
      'k in 10.0.0.0/8: tightens: no longer matches 192.168.0.0/16; other limits may apply to these values',
    ]);
  });
});

describe('a domain', () => {
  test.each([
    [
      '',
      'response_headers: [x-ratelimit]',
      'changes: response_headers: none, unless LIMIT_RESPONSE_HEADERS_ENABLED is set becomes x-ratelimit',
    ],
    [
      '',
      'request_headers: [x-ratelimit]',
      'changes: request_headers: none, unless LIMIT_REQUEST_HEADERS_ENABLED is set becomes x-ratelimit',
    ],
    ['', 'denied_response: problem+json', 'changes: denied_response is set'],
    [
      '',
      'decision_metadata: true',
      'changes: decision_metadata: off, unless DECISION_METADATA is set becomes on',
    ],
  ])('%s -> %s', (before, after, line) => {
    expect(linesOf(file('', before), file('', after))).toEqual([`: ${line}`]);
  });

  const A = 'a'.repeat(64);
  test.each([
    [
      'derive: [{ entry: t, from: [api_key], sha256: {} }]',
      `derive: [{ entry: t, from: [api_key], sha256: { ${A}: acme } }]`,
      'tightens: derive differs; different limits may now apply to requests',
    ],
    [
      `derive: [{ entry: t, from: [api_key], sha256: { ${A}: acme } }]`,
      `derive: [{ entry: t, from: [api_key], sha256: { ${A}: globex } }]`,
      'tightens: derive differs; different limits may now apply to requests',
    ],
    [
      'derive: [{ entry: g, from: [p], rules: [{ p: /a, value: x }, { value: y }] }]',
      'derive: [{ entry: g, from: [p], rules: [{ p: /b, value: x }, { value: y }] }]',
      'tightens: derive differs; different limits may now apply to requests',
    ],
  ])('%s', (before, after, line) => {
    expect(linesOf(file('', before), file('', after))).toEqual([`: ${line}`]);
    expect(linesOf(file('', before), file('', before))).toEqual([]);
  });

  test('contains no secret', () => {
    const top = 'derive: [{ entry: t, from: [token], sha256: {} }]';
    const text = JSON.stringify([
      changesOf(file('', top), file('{ key: token, value: s3cret, rate_limit: { unlimited: true } }', top)),
      changesOf(file(''), file('{ key: api_key, value: s3cret, rate_limit: { unlimited: true } }')),
    ]);
    expect(text).not.toContain('s3cret');
    expect(text.match(/redacted sha256/g)).toHaveLength(2);
  });
});

/**
 * Equal behaviour is not a change, even if it is written differently. Similar spellings with different behaviour are
 * changes.
 */
describe('another spelling', () => {
  const node = (fields: string): string => limited(MINUTE, fields);
  const top = (fields: string, limit = MINUTE): string =>
    file(`{ key: k, rate_limit: { ${limit} } }`, fields);

  // property/diff-spellings.property.test.ts tests the other spellings.
  test.each(cases`
    days in UTC
      ${limited('unit: day, requests_per_unit: 5')}
      ${limited('unit: day, requests_per_unit: 5, calendar: Etc/UTC')}
    a phase that ended
      ${node('phase: { active: 2027-01-01T00:00:00Z, grace_period: 2024-01-01T00:00:00Z },')}
      ${node('phase: { active: 2027-01-01T00:00:00Z, grace_period: 2025-01-01T00:00:00Z },')}
    a phase in the distant future
      ${top('phase: { active: 2027-01-01T00:00:00Z }')}
      ${top('phase: { active: 2027-01-01T00:00:00Z, grace_period: 2027-01-01T00:00:00Z }')}
    the share of the whole limit
      ${top('on_store_failure: local')}
      ${top('on_store_failure: { local: 1.0 }', `${MINUTE}, on_store_failure: { local: 1 }`)}
    headers without a limit
      ${limited('unlimited: true')}
      ${limited('unlimited: true, response_headers: [ratelimit]')}
    blocks after the first
      ${node('value_cidr: [10.0.0.0/8, 192.0.2.0/24, 2001:db8::/32],')}
      ${node('value_cidr: [10.0.0.0/8, "2001:0DB8::/32", 192.0.2.0/24],')}
  `)('is no change: %s', (_, before, after) => {
    expect(changesOf(before, after)).toEqual([]);
    expect(changesOf(after, before)).toEqual([]);
  });

  test('that starts a list with another item is another node, which is named after the item', () => {
    expect(linesOf(node('value_regex: [a+, b+],'), node('value_regex: [b+, a+],'))).toEqual([
      'k~b+,…: appears !: 10 per minute',
      'k~a+,…: vanishes !: 10 per minute; other limits may now deny more',
    ]);
  });

  test('of headers is a change if the file has others', () => {
    const own = `${MINUTE}, response_headers: [ratelimit]`;
    expect(
      linesOf(top('response_headers: [retry-after]'), top('response_headers: [retry-after]', own)),
    ).toEqual(['k: changes: response_headers: retry-after becomes ratelimit']);
    expect(
      linesOf(top('response_headers: [ratelimit]'), top('response_headers: [retry-after]', own)),
    ).toEqual([': changes: response_headers: ratelimit becomes retry-after']);
  });
});
