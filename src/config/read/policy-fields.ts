import { MIN_SHARE, STORE_FAILURE_POLICIES } from '../../limiter/failure-policy.js';
import { MAX_FILL_MICROS, MAX_UINT32 } from '../../limiter/rate-algorithm.js';
import { LEASE_FOR, LEASE_MAX } from '../../policy/leases.js';
import { ALGORITHMS, DEFAULT_ALGORITHM, UNMATCHED_MODES } from '../../policy/policy.js';
import { HEADER_FAMILIES, HOLD_PAIRS, HOLD_SOURCES, PHASES, UNKNOWN_USES } from '../../policy/rule.js';
import type { Constraint, Fields, MappingName } from './field.js';

/**
 * The only description of the policy format: every mapping, and every key in it with the kind of its value, its bounds
 * and its meaning. The readers, the JSON Schema (deploy/policy.schema.json), the page of all keys
 * (docs/reference/policy-keys.md) and the conversion of xDS resources are derived from it. A test compares it with the
 * xDS messages (proto/ratelimit/config/ratelimit/v3/rls_conf.proto).
 */

const SECOND = 1_000_000;
/** Maximum time that a hold or a slot lasts: 7 days. */
const MAX_EXPIRY = 168 * 3600 * SECOND;
/** Maximum number of limits in one list. Every request of the node takes from each of their buckets. */
export const MAX_LIMITS = 16;
/** Maximum number of headers of a soft limit, and maximum length of a value. */
export const MAX_HEADERS = 8;
export const MAX_HEADER_LENGTH = 256;
/** Maximum number of classes of a limit. */
export const MAX_CLASSES = 16;
/** Pattern of a share in `keep`. */
export const SHARE = '^(?:100|[0-9]{1,2})(?:\\.[0-9]{1,3})?%$';
/** Maximum length of a denial's body in bytes. Every denial contains it. */
export const MAX_BODY_BYTES = 65_536;
/** Maximum number of rows of a table of plans. */
export const MAX_PLAN_ROWS = 2_000_000;

/** Valid items of `response_headers`. */
export const RESPONSE_HEADER_FAMILIES: readonly string[] = Object.values(HEADER_FAMILIES);

/** Valid items of `request_headers`. A forwarded request needs no header with a retry time. */
export const REQUEST_HEADER_FAMILIES = RESPONSE_HEADER_FAMILIES.filter((family) => family !== 'retry-after');

/** Pattern of the name of a value in a plan, which can be the header of a column and the key of a mapping. */
export const PLAN_VALUE_NAME = '^[A-Za-z_][A-Za-z0-9_-]{0,62}$';

const CIDR =
  '^(?:[0-9]{1,3}(?:\\.[0-9]{1,3}){3}(?:/(?:[0-9]|[12][0-9]|3[0-2]))?|' +
  '[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:/(?:[0-9]|[1-9][0-9]|1[01][0-9]|12[0-8]))?)$';

/** Keys of files, descriptors and items of `rate_limits`, each of which sets the value for everything below. */
export const PHASE = {
  phase: {
    kind: 'word_or_mapping',
    words: PHASES,
    of: 'phase_schedule',
    other: 'a mapping with the times of grace_period and active',
    meaning: 'write active to deny requests, or monitoring to only count them',
    default: 'active',
    inherits: true,
    xds: { mappingIn: 'phase_schedule' },
    about:
      'Only active denies requests. In monitoring and grace_period, answers report that a request would be denied. ' +
      'A schedule contains the RFC 3339 times at which phases begin, and starts in monitoring. The most specific ' +
      'phase applies: that of the item of rate_limits, else of the nearest descriptor, else of the file.',
    examples: ['monitoring', { grace_period: '2030-01-01T00:00:00Z', active: '2030-02-01T00:00:00Z' }],
  },
} as const satisfies Fields;

const PHASE_START = {
  kind: 'time',
  empty: 'unusual',
  about: 'The RFC 3339 time at which this phase begins. The phase active must not begin before grace_period.',
  examples: ['2030-01-01T00:00:00Z'],
} as const;

const ENFORCE_PERCENT = {
  enforce_percent: {
    kind: 'number',
    min: 0,
    max: 100,
    default: 100,
    inherits: true,
    empty: 'warning',
    about:
      'The percentage of denials that weir enforces. It answers the other requests as in the monitoring phase. The ' +
      'most specific enforce_percent applies: that of the item of rate_limits, else of the nearest descriptor, ' +
      'else of the file.',
    examples: [10, 0.5],
  },
} as const satisfies Fields;

const ON_UNMATCHED = {
  on_unmatched: {
    kind: 'word',
    words: UNMATCHED_MODES,
    default: 'warn',
    inherits: true,
    empty: 'warning',
    about:
      'How weir logs descriptors that match no rule: warn logs a warning with their keys, and ignore logs no ' +
      'warning. Both allow the descriptors. The most specific on_unmatched applies: that of the nearest ' +
      'descriptor, else of the file.',
  },
} as const satisfies Fields;

const LEASE = {
  lease: {
    kind: 'mapping',
    of: 'lease',
    empty: 'error',
    about:
      'Lets each process take tokens of a busy bucket from Redis in advance, and spend them without asking Redis ' +
      'again. Limits default to the lease of the file, and the file to LEASE_FOR. Limits with concurrency, hold, ' +
      'allow_debt, priorities, then or quota_mode never lease.',
    examples: [{ for: '50ms', max: 100 }],
  },
} as const satisfies Fields;

/** Keys of files and limits about answers. */
export const ANSWERS = {
  on_store_failure: {
    kind: 'word_or_mapping',
    words: STORE_FAILURE_POLICIES,
    of: 'local_share',
    other: 'a local share, as in { local: 0.25 }',
    default: 'error',
    inherits: true,
    empty: 'unusual',
    xds: { mappingIn: 'on_store_failure_share' },
    about:
      "The answer while Redis is unavailable. allow and deny give this answer. error fails the call, and Envoy's " +
      'failure_mode_deny decides. local uses buckets in memory: each replica enforces the whole limit, or with ' +
      '{ local: 0.25 } a quarter of it.',
    examples: [{ local: 0.25 }],
  },
  response_headers: {
    kind: 'words',
    words: RESPONSE_HEADER_FAMILIES,
    items: 'header families',
    about:
      'The families of headers that Envoy adds to the response. An empty list adds no headers. Rules default to ' +
      'the list of the file. The file defaults to the environment variables.',
    examples: [['x-ratelimit'], ['ratelimit', 'retry-after']],
  },
  request_headers: {
    kind: 'words',
    words: REQUEST_HEADER_FAMILIES,
    items: 'header families',
    about:
      'The families of headers that Envoy adds to the request for the upstream. An empty list adds no headers. ' +
      'Rules default to the list of the file. The file defaults to the environment variables.',
    examples: [['x-ratelimit']],
  },
  denied_response: {
    kind: 'word_or_mapping',
    words: ['problem+json'],
    of: 'denied_response',
    other: 'a mapping, as in { body: "slow down" }',
    empty: 'warning',
    xds: 'preset',
    about:
      'The body of denials, with its content type, or problem+json (RFC 9457), which names the limits that denied ' +
      'the request. Rules default to the denied_response of the file.',
    examples: ['problem+json', { body: '{"error":"slow down"}', content_type: 'application/json' }],
  },
} as const satisfies Fields;

const DESCRIPTORS = {
  descriptors: {
    kind: 'list',
    of: 'descriptor',
    items: 'mappings with a key',
    first: 'key',
    empty: 'warning',
    reference: true,
    about:
      "The nodes of one level of the tree. Each entry of a request's descriptor matches a node one level deeper. A " +
      'rule applies only if the descriptor ends at its node.',
    examples: [[{ key: 'tenant', rate_limit: { unit: 'hour', requests_per_unit: 100 } }]],
  },
} as const satisfies Fields;

/** Keys that set the rate of a `rate_limit`, or an item of `rate_limits`. */
export const RATE_FIELDS = {
  token_bucket: {
    kind: 'mapping',
    of: 'token_bucket',
    empty: 'unusual',
    about: 'A bucket that starts full and refills continuously. An empty bucket must fill within 100 years.',
    examples: [{ max_tokens: 100, tokens_per_fill: 10, fill_interval: '1s' }],
  },
  unit: {
    kind: 'unit',
    planned: true,
    reference: true,
    empty: 'unusual',
    about:
      'The length of the window. Windows are aligned to the Unix epoch. A month has 30 days, and a year has 365 ' +
      'days. Set unit_multiplier for windows of several units, and calendar for days, weeks, months and years of a ' +
      'time zone.',
  },
  requests_per_unit: {
    kind: 'count',
    min: 0,
    max: MAX_UINT32,
    less: 'or replace the key with unlimited: true for no limit',
    planned: true,
    reference: true,
    empty: 'unusual',
    about: 'The number of requests allowed in each window. 0 denies all requests.',
    examples: [250],
  },
  unit_multiplier: {
    kind: 'count',
    min: 1,
    max: MAX_UINT32,
    default: 1,
    empty: 'warning',
    about:
      'The number of units in a window: 5 with unit: minute is a window of five minutes. A window is at most 100 ' +
      'years long.',
    examples: [5],
  },
  calendar: {
    kind: 'text',
    schemaPattern: '^[A-Za-z][A-Za-z0-9_+/-]*$',
    empty: 'warning',
    about:
      'The IANA name of a time zone. The windows are the days, weeks (from Monday), months or years of this time ' +
      'zone.',
    examples: ['Europe/Berlin', 'UTC'],
  },
  algorithm: {
    kind: 'word',
    words: ALGORITHMS,
    empty: 'warning',
    about:
      'How unit and requests_per_unit limit requests: in a fixed window, or with a token bucket that refills at ' +
      'this rate. Defaults to the algorithm of the file.',
  },
  burst: {
    kind: 'count',
    min: 1,
    max: MAX_UINT32,
    planned: true,
    empty: 'warning',
    about:
      'The capacity of the token bucket that algorithm: token_bucket creates from unit and requests_per_unit. ' +
      'Defaults to requests_per_unit.',
    examples: [20],
  },
  concurrency: {
    kind: 'mapping',
    of: 'concurrency',
    empty: 'unusual',
    about:
      'A limit on concurrent requests, instead of token_bucket or unit. A request occupies its slots until Envoy ' +
      'reports its end.',
    examples: [{ max: 10, expires_after: '60s' }],
  },
  hold: {
    kind: 'mapping',
    of: 'hold',
    empty: 'warning',
    about:
      "Holds an estimate of a request's use until the request ends, and then charges or gives back the difference. " +
      'Next to token_bucket, or unit and requests_per_unit. It has amount or from.',
    examples: [{ amount: 5000, expires_after: '10m' }],
  },
  priorities: {
    kind: 'mapping',
    of: 'priorities',
    empty: 'error',
    about:
      'Classes of callers that share the bucket of the limit. Requests of a class leave a part of the limit to the ' +
      'other classes. Cannot be combined with allow_debt.',
    examples: [{ by: 'class', keep: { batch: '50%', interactive: 0 } }],
  },
  ...LEASE,
  allow_debt: {
    kind: 'flag',
    default: false,
    empty: 'warning',
    about:
      'Counts usage that already happened, such as the tokens of a language model. A request with more than 1 hit ' +
      'is always allowed and can leave the bucket in debt. Requests with 1 hit are then denied until refills have ' +
      'paid the debt and added one token.',
  },
  max_debt: {
    kind: 'count',
    min: 0,
    max: MAX_UINT32,
    empty: 'warning',
    xds: 'optional',
    about:
      'The maximum debt in hits, with allow_debt or hold. weir forgives usage beyond it. Defaults to the capacity ' +
      'of the bucket, or to requests_per_unit, which is also the maximum for a window. 0 is allowed only with ' +
      'hold: settlements then leave no debt.',
    examples: [1000],
  },
} as const satisfies Fields;

/** Keys that only an unlimited rule cannot have, because they set a limit. */
export const RATE_KEYS = Object.keys(RATE_FIELDS) as readonly (keyof typeof RATE_FIELDS)[];

const REPLACES = {
  replaces: {
    kind: 'list',
    of: 'replaced_rule',
    items: 'mappings with a name',
    first: 'name',
    reference: true,
    about: 'Rules that do not apply when this rule matches.',
    examples: [[{ name: 'other' }]],
  },
} as const satisfies Fields;

const ON_OVER = {
  on_over: {
    kind: 'mapping',
    of: 'on_over',
    empty: 'error',
    about:
      'Makes the limit a soft limit: requests over it pass, with headers and metadata that Envoy can route by. In ' +
      'phases before active and in shadow mode, such requests are not marked.',
    examples: [{ allow: true, request_headers: [{ 'x-weir-over': 'burst' }] }],
  },
} as const satisfies Fields;

/** `expires_after` of a hold or a slot. */
const EXPIRY = { kind: 'duration', min: 1000, max: MAX_EXPIRY, step: 1000 } as const;

export const POLICY_FIELDS = {
  file: {
    domain: {
      kind: 'name',
      required: 'write the domain that Envoy sends, as in domain: shop',
      reference: true,
      about:
        'The name that requests use to select this policy. A domain has one file, unless MERGE_DOMAIN_CONFIG is set.',
      examples: ['open-api'],
    },
    ...PHASE,
    algorithm: {
      kind: 'word',
      words: ALGORITHMS,
      default: DEFAULT_ALGORITHM,
      inherits: true,
      empty: 'warning',
      about:
        'How unit and requests_per_unit limit requests: in a fixed window, or with a token bucket that refills at ' +
        'this rate. Rules can override it. Defaults to DEFAULT_ALGORITHM.',
    },
    response_headers: ANSWERS.response_headers,
    request_headers: ANSWERS.request_headers,
    denied_response: ANSWERS.denied_response,
    decision_metadata: {
      kind: 'flag',
      empty: 'warning',
      xds: 'optional',
      about:
        'If true, the dynamic metadata of answers contains the rule that decided, its limit and the remaining ' +
        "hits, for Envoy's access log. Defaults to DECISION_METADATA.",
    },
    on_store_failure: ANSWERS.on_store_failure,
    ...ON_UNMATCHED,
    ...ENFORCE_PERCENT,
    ...LEASE,
    derive: {
      kind: 'list',
      of: 'derive_item',
      items: 'mappings',
      about:
        'Computes entries from other entries before matching. The items run in order. The new entry replaces its ' +
        'sources, at the position of the first one. If no rule matches, the entries stay unchanged.',
      examples: [[{ entry: 'group', from: ['path'], rules: [{ path: '/v1/**', value: 'old' }] }]],
    },
    plans: {
      kind: 'mapping',
      of: 'plans',
      // The rows are in a file on weir's machine, and a management server does not know such files.
      xds: 'file_only',
      about:
        'The limits of each customer in a table: rows in a file, and the plans that these rows refer to.',
      examples: [
        {
          by: 'tenant',
          from: 'customers.csv',
          default: 'free',
          define: { free: { burst: 20, rate: 5 }, gold: { burst: 500, rate: 100 } },
        },
      ],
    },
    ...DESCRIPTORS,
  },
  descriptor: {
    key: {
      kind: 'name',
      required: 'write the key of the entry that this descriptor matches',
      reference: true,
      about: 'The key of the entry.',
      examples: ['tenant'],
    },
    value: {
      kind: 'name',
      instead: 'write an item of "descriptors" for each value',
      reference: true,
      about:
        'The value of the entry. "*" matches any characters, or none. A node without a value matches every value, ' +
        'and each value has its own bucket. On each level, exact values match first, then value_cidr (longest ' +
        'prefix first), patterns with "*", value_regex, and nodes without a value.',
      examples: ['user-chats', 'GET_*'],
    },
    value_cidr: {
      kind: 'texts',
      items: 'texts',
      single: true,
      schemaPattern: CIDR,
      empty: 'error',
      about:
        'A block of IPv4 or IPv6 addresses, or a list of blocks, instead of value. The longest prefix of a level ' +
        'matches first.',
      examples: ['10.0.0.0/8', ['192.0.2.0/24', '2001:db8::/32']],
    },
    value_regex: {
      kind: 'texts',
      items: 'texts',
      single: true,
      empty: 'error',
      about:
        'A regular expression (RE2) for the whole value, or a list of them, instead of value. Regular expressions ' +
        'match in the order of the file, before nodes without a value and after all other nodes.',
      examples: ['[a-z]+-[0-9]{1,5}'],
    },
    ...PHASE,
    share_threshold: {
      kind: 'flag',
      default: false,
      reference: true,
      about: "If true, all values that match the node's pattern, value_cidr or value_regex share one bucket.",
    },
    shadow_mode: {
      kind: 'flag',
      default: false,
      reference: true,
      about: 'If true, weir answers requests as in the monitoring phase, in every phase.',
    },
    quota_mode: {
      kind: 'flag',
      default: false,
      reference: true,
      about:
        'If true, the rule denies a request only if all matched rules with quota_mode are over their limits. Not ' +
        'allowed with rate_limits.',
    },
    detailed_metric: {
      kind: 'flag',
      default: false,
      reference: true,
      about:
        "If true, the rule's name in the statistics of envoyproxy/ratelimit includes all values of the descriptor.",
    },
    value_to_metric: {
      kind: 'flag',
      default: false,
      reference: true,
      about:
        "If true, the rule's name in the statistics of envoyproxy/ratelimit includes the value of this entry.",
    },
    metadata: {
      kind: 'metadata',
      reference: true,
      about:
        "Any mapping. With RESPONSE_DYNAMIC_METADATA, it is added to the answer's dynamic metadata when the rule " +
        'allows a request.',
      examples: [{ team: 'search' }],
    },
    rate_limit: {
      kind: 'mapping',
      of: 'rate_limit',
      instead: 'write it as { unit: minute, requests_per_unit: 10 }, and several limits as "rate_limits"',
      reference: true,
      about:
        'One limit: token_bucket, unit with requests_per_unit, concurrency, or unlimited. A node without a limit ' +
        'exempts its values from the limits of other nodes on its level.',
      examples: [{ unit: 'hour', requests_per_unit: 100 }],
    },
    rate_limits: {
      kind: 'list',
      of: 'rate_limits_item',
      items: 'limits',
      min: 1,
      max: MAX_LIMITS,
      empty: 'error',
      about:
        'A list of limits, instead of rate_limit. A request is allowed only if every limit allows it. It takes ' +
        'from all limits or from none.',
      examples: [
        [
          { name: 'burst', unit: 'second', requests_per_unit: 10 },
          { name: 'daily', unit: 'day', requests_per_unit: 250 },
        ],
      ],
    },
    ...ENFORCE_PERCENT,
    ...ON_UNMATCHED,
    ...DESCRIPTORS,
  },
  rate_limit: {
    name: {
      kind: 'name',
      reference: true,
      about: 'The name of the limit in answers. Other rules use this name in replaces.',
      examples: ['daily'],
    },
    ...REPLACES,
    ...RATE_FIELDS,
    unlimited: {
      kind: 'flag',
      default: false,
      reference: true,
      about: 'If true, the rule has no limit and stores no state.',
    },
    ...ANSWERS,
    ...ON_OVER,
  },
  rate_limits_item: {
    name: {
      kind: 'name',
      noDigits: true,
      about:
        'The name of the limit in answers, statistics and bucket names. Other rules use this name in replaces. It ' +
        'must not consist of digits only, because numbers are positions in the list.',
      examples: ['daily'],
    },
    ...REPLACES,
    ...RATE_FIELDS,
    ...ANSWERS,
    ...ON_OVER,
    // biome-ignore lint/suspicious/noThenProperty: a key of policies
    then: {
      kind: 'name',
      noDigits: true,
      empty: 'error',
      about:
        'Name of the next limit of the list, which pays for the requests that do not fit into this limit. The last ' +
        'limit of such a chain denies.',
      examples: ['credits'],
    },
    ...PHASE,
    shadow_mode: {
      kind: 'flag',
      xds: 'optional',
      about:
        'If true, this limit does not deny requests, as in the monitoring phase. Defaults to the shadow_mode of ' +
        'the node.',
    },
    ...ENFORCE_PERCENT,
  },
  token_bucket: {
    max_tokens: {
      kind: 'count',
      min: 1,
      max: MAX_UINT32,
      less: 'or write unit and requests_per_unit: 0 instead of token_bucket to deny every request',
      planned: true,
      required: 'write the capacity of the bucket, such as 100',
      xds: 'kept',
      about: 'The capacity: the number of requests allowed at once.',
      examples: [100],
    },
    tokens_per_fill: {
      kind: 'count',
      min: 1,
      max: MAX_UINT32,
      planned: true,
      default: 1,
      xds: 'wrapped',
      about: 'The number of tokens added in each fill_interval.',
      examples: [10],
    },
    fill_interval: {
      kind: 'duration',
      min: 1000,
      max: MAX_FILL_MICROS,
      step: 1,
      less: 'or multiply it and tokens_per_fill by the same number',
      planned: true,
      required: 'write the interval at which tokens_per_fill tokens are added, such as 1s',
      about:
        'The time in which tokens_per_fill tokens are added, as a number and a unit (ms, s, m or h). At least 1ms. ' +
        'Write a day as 24h.',
      examples: ['1s', '150ms', '1h30m'],
    },
  },
  concurrency: {
    max: {
      kind: 'count',
      min: 1,
      max: MAX_UINT32,
      less: 'or write requests_per_unit: 0 to deny every request',
      planned: true,
      required: 'write the maximum number of concurrent requests, such as 10',
      xds: 'kept',
      about: 'The number of slots. A request occupies as many slots as it has hits.',
      examples: [10],
    },
    expires_after: {
      ...EXPIRY,
      default: '60s',
      about:
        'The time after which a slot becomes free even if Envoy has not reported the end of the request. From 1ms ' +
        'to 168h.',
      examples: ['60s'],
    },
    retry_after: {
      kind: 'duration',
      min: SECOND,
      max: MAX_EXPIRY,
      step: SECOND,
      about:
        'The value of retry-after for denied requests: the time after which clients should retry, in whole ' +
        'seconds. Without it, such answers have no retry-after. From 1s to 168h.',
      examples: ['5s'],
    },
  },
  hold: {
    amount: {
      kind: 'count',
      min: 1,
      max: MAX_UINT32,
      planned: true,
      empty: 'unusual',
      about:
        'The number of hits that weir deducts when a request starts. At most the capacity of the bucket, or the ' +
        'requests_per_unit of the window.',
      examples: [5000],
    },
    from: {
      kind: 'word',
      words: HOLD_SOURCES,
      about: 'first_call: the estimate is the hits of the first call of each request, instead of amount.',
    },
    expires_after: {
      ...EXPIRY,
      default: '10m',
      about:
        'The time after which a hold can no longer be settled, so that weir keeps its hits. From 1ms to 168h.',
      examples: ['10m'],
    },
    unknown: {
      kind: 'word',
      words: UNKNOWN_USES,
      default: 'keep',
      about:
        'What happens to the hits of a hold if a request ends and its use is unknown: with keep, weir keeps them, ' +
        'and with free, weir gives them back.',
    },
    pair: {
      kind: 'word',
      words: HOLD_PAIRS,
      default: 'token',
      about:
        'Which holds weir settles when a request ends. token: the holds in the hold token that Envoy sends. ' +
        'oldest: the oldest hold in the bucket, for gateways without hold tokens. A call with 0 hits then starts a ' +
        'request, and any other call ends one. oldest cannot be combined with from or unknown: free.',
    },
  },
  priorities: {
    by: {
      kind: 'name',
      required: 'write the key of the entry that names the class of the caller, as in by: class',
      about:
        'The key of the entry whose value names the class. The descriptor of the limit, or one above it, must have ' +
        'this key and match every value. All values share one bucket. A descriptor that lacks only this entry meets ' +
        'the limit as the class unknown.',
      examples: ['class'],
    },
    keep: {
      kind: 'kept_hits',
      required: 'write what each class leaves to the others, as in keep: { batch: 50%, interactive: 0 }',
      about:
        'The classes, each with what its requests leave in the bucket: a whole number of hits, or a share of the ' +
        'limit such as 50%, which rounds down. At least one hit must remain for each class. At most 16 classes.',
      examples: [{ batch: '50%', standard: '20%', interactive: 0 }],
    },
    unknown: {
      kind: 'name',
      empty: 'error',
      about:
        'The class in keep of callers with another value, or without the entry. Defaults to the class that keeps most.',
      examples: ['batch'],
    },
  },
  lease: {
    for: {
      kind: 'duration',
      ...LEASE_FOR,
      step: 1000,
      required: 'write how long a process may spend leased tokens, as in for: 50ms',
      about: 'The time after which unspent tokens of a lease lapse.',
      examples: ['50ms'],
    },
    max: {
      kind: 'count',
      min: LEASE_MAX.min,
      max: LEASE_MAX.max,
      default: LEASE_MAX.default,
      about: 'The maximum number of tokens of a lease.',
      examples: [100],
    },
    exact: {
      kind: 'flag',
      default: true,
      xds: 'optional',
      about:
        'Whether a token bucket leaves out of its capacity what refills during a lease, so that no interval has ' +
        'more hits than without leases. If false, an interval may have that many hits more.',
    },
  },
  replaced_rule: {
    name: {
      kind: 'name',
      required: 'write the name of the rule to replace, or remove the item',
      reference: true,
      about: 'The name of the rule to replace.',
      examples: ['daily'],
    },
  },
  denied_response: {
    body: {
      kind: 'text',
      required: 'write the text that denied callers receive, or "" for none',
      mayBeEmpty: true,
      xds: 'kept',
      maxLength: MAX_BODY_BYTES,
      about: 'The body, at most 65,536 bytes. "" sends no body.',
      examples: ['slow down'],
    },
    content_type: {
      kind: 'text',
      schemaPattern: '^(?:[^/\\s]+/[^\\s].*)?$',
      maxLength: 256,
      about: 'The media type in the header content-type. If it is omitted, Envoy sends text/plain.',
      examples: ['application/json'],
    },
  },
  on_over: {
    allow: {
      kind: 'flag',
      required: 'write allow: true',
      about: 'Must be true: requests over the limit pass.',
    },
    request_headers: {
      kind: 'headers',
      about: 'Headers that Envoy adds to the request, each as a mapping of a name to a value. At most 8.',
      examples: [[{ 'x-weir-over': 'burst' }]],
    },
    metadata: {
      kind: 'metadata',
      about: 'The member over of the dynamic metadata of such requests.',
      examples: [{ tier: 'economy' }],
    },
  },
  phase_schedule: { grace_period: PHASE_START, active: PHASE_START },
  local_share: {
    local: {
      kind: 'number',
      min: MIN_SHARE,
      max: 1,
      meaning: 'the share of the limit that each replica enforces, such as 0.25 for a quarter',
      required: 'write the share of the limit that each replica enforces, such as 0.25 for a quarter',
      about:
        'The share of the limit, above 0, that each replica enforces while Redis is unavailable, such as 0.25 with ' +
        'four replicas. The workers of a replica divide the share. Each worker has at least one token.',
      examples: [0.25],
    },
  },
  plans: {
    by: {
      kind: 'name',
      required: 'write the key of the entry that names the customer, such as tenant',
      xds: 'file_only',
      about:
        'The key of the entry whose value selects the row, such as tenant. A descriptor with this key must lead to ' +
        'each limit that uses a plan.',
      examples: ['tenant'],
    },
    from: {
      kind: 'text',
      xds: 'file_only',
      about:
        'A file with the rows, relative to the policy file, or the address of a hash in Redis. Formats of files: ' +
        '.csv (or .tsv), .jsonl (or .ndjson), .yaml or .json. weir reloads the rows with the policy. If from is not ' +
        'set, the plans in define are the rows.',
      examples: ['customers.csv'],
    },
    columns: {
      kind: 'texts',
      items: 'names of columns',
      xds: 'file_only',
      about:
        'Names of the columns that weir reads. weir always reads the column named in by, and ignores all other ' +
        'columns. If columns is not set, a column that no limit uses is an error.',
      examples: [['plan', 'burst']],
    },
    default: {
      kind: 'text',
      xds: 'file_only',
      about: 'The plan of customers without a row, as it is named in define.',
      examples: ['free'],
    },
    define: {
      kind: 'plan_values',
      xds: 'file_only',
      about:
        'Plans by name, each with its values. unlimited, blocked and phase apply to all limits that use a plan.',
      examples: [{ free: { burst: 20, rate: 5 }, gold: { burst: 500, rate: 100 } }],
    },
    max_drop: {
      kind: 'number',
      min: 0,
      max: 100,
      default: 20,
      xds: 'file_only',
      about:
        'The largest percentage of rows that a new version of the table can lack. If more rows are missing, weir ' +
        'keeps the previous rows.',
      examples: [50],
    },
    max_drop_from: {
      kind: 'count',
      min: 1,
      max: MAX_PLAN_ROWS,
      default: 20,
      xds: 'file_only',
      about:
        '`max_drop` applies if at least this many rows are in effect. A smaller table may lose all rows except ' +
        'one.',
      examples: [1000],
    },
  },
  plan_value: {
    plan: {
      kind: 'text',
      schemaPattern: PLAN_VALUE_NAME,
      required: 'write the name of a value, as in { plan: burst, default: 100 }',
      xds: 'file_only',
      about: 'The name of the value: a column of the table, or a key of the plans in define.',
      examples: ['burst'],
    },
    default: {
      kind: 'any',
      xds: 'file_only',
      about: 'The value for customers whose plan does not have it.',
      examples: [100],
    },
  },
  derive_item: {
    entry: {
      kind: 'text',
      required: 'write the key of the new entry',
      about: 'The key of the new entry.',
      examples: ['tenant', 'resource_group'],
    },
    from: {
      kind: 'texts',
      items: 'entry keys',
      required: 'list the keys of the entries to derive from',
      about: 'The keys of the source entries. A table of API keys has exactly one.',
      examples: [['method', 'path'], ['api_key']],
    },
    rules: {
      kind: 'list',
      of: 'derive_rule',
      items: 'mappings',
      min: 1,
      empty: 'error',
      about: 'The first rule whose conditions all match supplies the value of the new entry.',
      examples: [[{ method: 'GET', path: '/open/{v4,v5}/user-chats', value: 'user-chats' }]],
    },
    sha256: {
      kind: 'key_table',
      about: 'Maps the SHA-256 of each API key (64 hex digits) to its tenant. Never write the key itself.',
      examples: [{ '2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b': 'acme' }],
    },
    sha256_file: {
      kind: 'text',
      // A management server cannot name files of weir's machine, so it sends the table itself.
      xds: 'file_only',
      about: 'A file with more of the table, relative to the policy file. weir reloads it with the policy.',
      examples: ['keys.yaml'],
    },
  },
  // The mapping also has the keys of `from`, which xDS sends in the field `conditions`.
  derive_rule: {
    value: {
      kind: 'text',
      required: 'write the value of the new entry',
      about: 'The value of the new entry.',
      examples: ['user-chats'],
    },
  },
} as const satisfies Readonly<Record<MappingName, Fields>>;

/** What mappings are, for editors, if it differs from the key that contains them. */
export const MAPPINGS_ABOUT: Partial<Readonly<Record<MappingName, string>>> = {
  file: 'The limits of one domain. Policy files of envoyproxy/ratelimit are valid, too.',
  descriptor: 'A node of the tree: the entry that it matches, and the limits of descriptors that end here.',
  rate_limits_item:
    'One of several limits. Its name, or its position if it has no name, identifies its buckets and statistics.',
  plan_value:
    'A value from the plan of the customer, instead of a number or a word. It needs plans at the top of the file.',
  derive_item:
    'Computes one entry from the entries in from, with rules or with a table of SHA-256 digests of API keys.',
  derive_rule:
    'Conditions for the keys in from, and the value of the new entry. A condition that begins with / is a path ' +
    'pattern. * and ? match within a segment, and ** matches any number of segments. {a,b} and [a-z] are allowed.',
};

const RATE_CONSTRAINTS: readonly Constraint[] = [
  {
    key: 'token_bucket',
    excludes: {
      unit: '',
      requests_per_unit: '',
      unit_multiplier: '',
      calendar: '',
      algorithm: ', which already sets the algorithm',
      burst: '; write the number as "max_tokens"',
    },
  },
  {
    key: 'concurrency',
    excludes: [
      'token_bucket',
      ...['unit', 'requests_per_unit', 'unit_multiplier', 'calendar', 'algorithm', 'burst', 'hold'],
      ...['allow_debt', 'max_debt', 'lease'],
    ],
  },
  {
    key: 'calendar',
    excludes: {
      unit_multiplier: ', whose windows are always one unit long',
      burst: ', which has no capacity',
    },
  },
  {
    key: 'hold',
    excludes: {
      allow_debt: ', whose settlements can always leave debt, up to "max_debt"',
      lease: ', whose hits are given back; remove one of the two',
    },
  },
  {
    key: 'priorities',
    excludes: {
      allow_debt:
        ', because a charge is always allowed, so it would take what its class must leave; remove one of the two',
      lease: ', whose classes have different limits; remove one of the two',
    },
  },
  {
    key: 'allow_debt',
    is: true,
    excludes: { lease: ', whose charges are always allowed; remove one of the two' },
  },
  // The algorithm may be that of the file, or of the environment.
  { key: 'algorithm', is: 'fixed_window', excludes: ['burst'], bySchema: true },
  { key: 'max_debt', unless: 'hold', needs: { allow_debt: true }, minimum: { max_debt: 1 }, bySchema: true },
  { key: 'hold', minimum: { requests_per_unit: 1 }, bySchema: true },
  { key: 'allow_debt', is: true, minimum: { requests_per_unit: 1 }, bySchema: true },
  { key: 'burst', minimum: { requests_per_unit: 1 }, bySchema: true },
];

/** What the keys of a mapping exclude, need and bound. */
export const CONSTRAINTS: Partial<Readonly<Record<MappingName, readonly Constraint[]>>> = {
  descriptor: [
    { key: 'value', excludes: ['value_cidr', 'value_regex'] },
    { key: 'value_cidr', excludes: { value_regex: '; write two descriptors' } },
    { key: 'rate_limit', excludes: { rate_limits: '; move that limit into the list' } },
    { key: 'quota_mode', is: true, excludes: ['rate_limits'], bySchema: true },
  ],
  rate_limit: RATE_CONSTRAINTS,
  rate_limits_item: RATE_CONSTRAINTS,
  hold: [
    { key: 'amount', excludes: ['from'] },
    {
      key: 'pair',
      is: 'oldest',
      excludes: { from: ', because a start then has 0 hits; write "amount" instead' },
    },
  ],
};

export function keysOf(mapping: MappingName): readonly string[] {
  return Object.keys(POLICY_FIELDS[mapping]);
}
