/* What is said of policies with wrong keys and values: the whole text. A start prints the same lines. */
import { describe } from '@jest/globals';
import { type BadPolicy, CUSTOMER, checked, LIMIT, node, testMistakes } from './table.js';

/** A policy whose one limit has these fields. */
const limit = (fields: string): string => `${CUSTOMER}    rate_limit: { ${fields} }\n`;
/** A policy that makes an entry by this rule. */
const derive = (rule: string): string => `domain: shop
derive:
  - entry: group
    from: [method, path]
    rules:
      - ${rule}
descriptors:
  - key: group
${LIMIT}`;

const KEYS: readonly BadPolicy[] = [
  {
    what: 'a mistyped key',
    policy: `domain: shop\ndescriptors:\n  - kye: customer\n${LIMIT}`,
    prints: `shop.yaml:3:5: descriptors[0].kye: unknown key "kye"; did you mean "key"?
shop.yaml:3:5: descriptors[0].key: the descriptor has no "key"; write the key of the entry that it matches
domains that weir serve would not load: shop
2 errors
`,
  },
  {
    what: 'a mistyped domain',
    policy: `domian: shop\ndescriptors:\n  - key: customer\n${LIMIT}`,
    prints: `shop.yaml:1:1: domain: "domain" is missing or empty; write the domain that Envoy sends, as in domain: shop
shop.yaml:1:1: domian: unknown key "domian"; did you mean "domain"?
2 errors
`,
  },
  {
    what: 'no domain',
    policy: `descriptors:\n  - key: customer\n${LIMIT}`,
    prints: `shop.yaml:1:1: domain: "domain" is missing or empty; write the domain that Envoy sends, as in domain: shop
1 error
`,
  },
  {
    what: 'camel case',
    policy: `${CUSTOMER}    rateLimit: { unit: minute, requestsPerUnit: 10 }\n`,
    prints: `shop.yaml:4:5: descriptors[0].rateLimit: unknown key "rateLimit"; did you mean "rate_limit"?
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a limit without rate_limit',
    policy: `${CUSTOMER}    unit: minute\n    requests_per_unit: 10\n`,
    warning: true,
    prints: `warning: shop.yaml:4:5: descriptors[0].unit: "unit" has no effect here; it belongs in "rate_limit"
warning: shop.yaml:5:5: descriptors[0].requests_per_unit: "requests_per_unit" has no effect here; it belongs in "rate_limit"
ok: 1 file, shop (0 rules)
`,
  },
  {
    what: 'quotes of a word processor',
    policy: `${node('value: “ann”').replace('shop', '“shop”').replace('key: customer', 'key: ‘customer’')}`,
    warning: true,
    prints: `warning: shop.yaml:1:9: domain: "domain" begins with “ and ends with ”, which are no quotes in YAML but a part of the text; write straight quotes (") in their place, or around them if requests hold them, too
warning: shop.yaml:3:10: descriptors[0].key: "key" begins with ‘ and ends with ’, which are no quotes in YAML but a part of the text; write straight quotes (") in their place, or around them if requests hold them, too
warning: shop.yaml:4:12: descriptors[0].value: "value" begins with “ and ends with ”, which are no quotes in YAML but a part of the text; write straight quotes (") in their place, or around them if requests hold them, too
ok: 1 file, '“shop”' (1 rule)
`,
  },
  {
    what: 'quotes of a word processor that are meant',
    policy: node('value: "“ann”"'),
    warning: true,
    prints: `ok: 1 file, shop (1 rule)
`,
  },
  {
    what: 'a limit for the whole file',
    policy: `domain: shop\n${LIMIT.trim()}\n`,
    warning: true,
    prints: `warning: shop.yaml:2:1: rate_limit: "rate_limit" has no effect here; it belongs in an item of "descriptors"
ok: 1 file, shop (0 rules)
`,
  },
  {
    what: 'a descriptor that is no item',
    policy: CUSTOMER.replace('- ', '') + LIMIT.slice(2),
    prints: `shop.yaml:3:3: descriptors: "descriptors" must be a list of mappings with a key; begin each item with "- "
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'several limits in rate_limit',
    policy: `${CUSTOMER}    rate_limit: [{ unit: day, requests_per_unit: 1 }]\n`,
    prints: `shop.yaml:4:17: descriptors[0].rate_limit: "rate_limit" must be a mapping, not a list; write "rate_limits" in its place for a list of limits on one key
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a limit twice',
    policy: `${CUSTOMER}${LIMIT}${LIMIT}`,
    warning: true,
    prints: `warning: shop.yaml:5:5: descriptors[0].rate_limit: the key "rate_limit" is written twice in one mapping, first in line 4, and only the last one counts; remove one of the two
ok: 1 file, shop (1 rule)
`,
  },
  {
    what: 'a descriptor twice',
    policy: `${CUSTOMER}${LIMIT}  - key: customer\n${LIMIT}`,
    prints: `shop.yaml:5:10: descriptors[1]: "customer" is written twice on this level, first in shop.yaml:3:10; merge the two, or remove one
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'no descriptors',
    policy: 'domain: shop\ndescriptors:\n',
    warning: true,
    prints: `warning: shop.yaml:2:13: descriptors: "descriptors" is empty and therefore ignored; write a value after it, or remove the key
ok: 1 file, shop (0 rules)
`,
  },
];

const VALUES: readonly BadPolicy[] = [
  {
    what: 'a rate in the place of a limit',
    policy: `${CUSTOMER}    rate_limit: 10/minute\n`,
    prints: `shop.yaml:4:17: descriptors[0].rate_limit: "rate_limit" must be a mapping, not a single value; write it as { unit: minute, requests_per_unit: 10 }
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a descriptor without its key',
    policy: `domain: shop\ndescriptors:\n  - customer\n`,
    prints: `shop.yaml:3:5: descriptors[0]: each item of "descriptors" must be a mapping, not a single value; begin it with "- key: "
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'several values',
    policy: node('value: [ann, bob]'),
    prints: `shop.yaml:4:12: descriptors[0].value: "value" must be a text, not a list; write an item of "descriptors" for each value
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a number with a comma',
    policy: limit('unit: minute, requests_per_unit: "1,000"'),
    prints: `shop.yaml:4:52: descriptors[0].rate_limit.requests_per_unit: "requests_per_unit" is the text "1,000"; write 1000, without quotes
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a word for no limit',
    policy: limit('unit: minute, requests_per_unit: unlimited'),
    prints: `shop.yaml:4:52: descriptors[0].rate_limit.requests_per_unit: "requests_per_unit" is "unlimited"; write a whole number from 0 to 4294967295, or unlimited: true in its place for no limit
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a unit in the plural',
    policy: limit('unit: minutes, requests_per_unit: 10'),
    prints: `shop.yaml:4:25: descriptors[0].rate_limit.unit: "minutes" is no unit; did you mean "minute"?
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a unit with a number',
    policy: limit('unit: 5m, requests_per_unit: 10'),
    prints: `shop.yaml:4:25: descriptors[0].rate_limit.unit: "5m" is no unit; write unit: minute, unit_multiplier: 5
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'no unit',
    policy: limit('requests_per_unit: 10'),
    prints: `shop.yaml:4:17: descriptors[0].rate_limit: "unit" is missing; write one of second, minute, hour, day, week, month, year
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a number in quotes',
    policy: limit('unit: minute, requests_per_unit: "10"'),
    prints: `shop.yaml:4:52: descriptors[0].rate_limit.requests_per_unit: "requests_per_unit" is the text "10"; write 10, without quotes
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a number below 0',
    policy: limit('unit: minute, requests_per_unit: -1'),
    prints: `shop.yaml:4:52: descriptors[0].rate_limit.requests_per_unit: "requests_per_unit" is -1; write a whole number from 0 to 4294967295, or unlimited: true in its place for no limit
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a rate for a number',
    policy: limit('unit: minute, requests_per_unit: 10/minute'),
    prints: `shop.yaml:4:52: descriptors[0].rate_limit.requests_per_unit: "requests_per_unit" is "10/minute"; write a whole number from 0 to 4294967295
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a duration in days',
    policy: limit('token_bucket: { max_tokens: 10, fill_interval: 1d }'),
    prints: `shop.yaml:4:66: descriptors[0].rate_limit.token_bucket.fill_interval: "1d" is no duration; write 24h
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a duration without a unit',
    policy: limit('token_bucket: { max_tokens: 10, fill_interval: 60 }'),
    prints: `shop.yaml:4:66: descriptors[0].rate_limit.token_bucket.fill_interval: "60" is no duration; write 1m
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a bucket and a window',
    policy: limit('unit: day, token_bucket: { max_tokens: 1, fill_interval: 1s }'),
    prints: `shop.yaml:4:25: descriptors[0].rate_limit.unit: "unit" cannot stand beside "token_bucket"; keep one of the two
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a block of addresses in value',
    policy: node('value: 10.0.0.0/8'),
    warning: true,
    prints: `warning: shop.yaml:4:12: descriptors[0].value: "value" is compared as a text, character by character, so it matches none of the addresses of this block; write "value_cidr" in its place to match them
ok: 1 file, shop (1 rule)
`,
  },
  {
    what: 'a regular expression in value',
    policy: node('value: "^/v1/.*$"'),
    warning: true,
    prints: `warning: shop.yaml:4:12: descriptors[0].value: "value" is a pattern in which only "*" is special, and this looks like a regular expression; write "value_regex" in its place if it is one
ok: 1 file, shop (1 rule)
`,
  },
  {
    what: 'a block with bits behind its prefix',
    policy: node('value_cidr: 10.0.0.1/8'),
    prints: `shop.yaml:4:17: descriptors[0].value_cidr: "10.0.0.1/8" has bits set after its prefix; write 10.0.0.0/8, or 10.0.0.1/32 for the one address
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a lookahead',
    policy: node("value_regex: '/v1/(?!health).*'"),
    prints: `shop.yaml:4:18: descriptors[0].value_regex: RE2 cannot read this regular expression (invalid or unsupported Perl syntax: \`(?!\`); correct it, and use no lookaround and no backreference, which RE2 does not have
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a word for true',
    policy: node('shadow_mode: enabled'),
    prints: `shop.yaml:4:18: descriptors[0].shadow_mode: "shadow_mode" is "enabled"; write true or false
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a word for a phase',
    policy: node('phase: shadow'),
    prints: `shop.yaml:4:12: descriptors[0].phase: "shadow" is not one of monitoring, grace_period, active; write active to deny requests, and monitoring to let them pass and only count them
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a day for a time',
    policy: node('phase: { active: 2026-09-01 }'),
    prints: `shop.yaml:4:22: descriptors[0].phase.active: "2026-09-01" is no RFC 3339 time; write 2026-09-01T00:00:00Z
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a percent sign',
    policy: node('enforce_percent: 25%'),
    prints: `shop.yaml:4:22: descriptors[0].enforce_percent: "enforce_percent" is "25%"; write a number from 0 to 100
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'the name of a header',
    policy: `response_headers: [x-ratelimit-limit]\n${CUSTOMER}${LIMIT}`,
    prints: `shop.yaml:1:20: response_headers[0]: "x-ratelimit-limit" is no header family; did you mean "x-ratelimit"?
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'an open brace in a path',
    policy: derive('{ path: "/{v4,v5/users", value: users }'),
    prints: `shop.yaml:6:17: derive[0].rules[0].path: "/{v4,v5/users" is no path pattern: a "{" is not closed; add "}", or write "\\{" for the character
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'an entry that is not in from',
    policy: derive('{ verb: GET, value: users }'),
    prints: `shop.yaml:6:11: derive[0].rules[0][0]: unknown key (not shown, as it may be a secret); the keys allowed here are method, path, value
domains that weir serve would not load: shop
1 error
`,
  },
  {
    what: 'a rule without its result',
    policy: derive('{ method: GET, path: "/open/**" }'),
    prints: `shop.yaml:6:9: derive[0].rules[0].value: "value" is missing; write the value of the new entry
domains that weir serve would not load: shop
1 error
`,
  },
];

describe('what weir check-config says of a policy', () => {
  testMistakes([...KEYS, ...VALUES].map(checked));
});
