import type { LabelMeanings } from '../families.js';
import { GoRegExp } from '../go-regexp.js';
import { DEFAULT_BUCKETS, DEFAULT_SUMMARY, type Mapping, type MappingRule } from './mapping.js';

const RULE_STATS = ['near_limit', 'over_limit', 'total_hits', 'within_limit', 'shadow_mode'];

export const MAPPED_LABELS: LabelMeanings = {
  domain: { meaning: "The policy's domain." },
  key1: { meaning: 'The first level of the rule: its key, or `key_value`.' },
  key2: { meaning: 'The second level of the rule, if it has one. Deeper levels are omitted.' },
  err_type: {
    meaning: 'The cause.',
    values: { redis_error: 'Redis', service_error: 'an invalid request, or no policy was loaded' },
  },
  grpc_method: { meaning: 'The method, such as `ShouldRateLimit` or `Check`.' },
};

const PLAIN = {
  drop: false,
  kind: undefined,
  observer: { kind: 'histogram', buckets: DEFAULT_BUCKETS },
  scale: 1,
  help: '',
} as const;

function glob(match: string, rule: Pick<MappingRule, 'name'> & Partial<MappingRule>): MappingRule {
  return { ...PLAIN, labels: [], ...rule, match: match.split('.') };
}

/**
 * Returns the default mapping of the reference: rules by domain and up to two keys (deeper keys are part of the
 * second), errors by `err_type`, and calls by `grpc_method`. With `millis`, response times stay in milliseconds, as in
 * older versions of the reference.
 */
export function defaultMapping(millis: boolean): Mapping {
  const rules: MappingRule[] = RULE_STATS.map((stat) =>
    glob(`ratelimit.service.rate_limit.*.*.${stat}`, {
      name: `ratelimit_service_rate_limit_${stat}`,
      labels: [
        ['domain', '$1'],
        ['key1', '$2'],
      ],
    }),
  );
  for (const stat of RULE_STATS) {
    // The pattern matches up to the end of the name. In the reference, over_limit_with_local_cache is also added to
    // over_limit, which already includes it.
    rules.push({
      ...PLAIN,
      match: new GoRegExp(
        `^ratelimit\\.service\\.rate_limit\\.([^.]*)\\.([^.]*)\\.([^.]*)(\\..*)?\\.${stat}$`,
      ),
      name: `ratelimit_service_rate_limit_${stat}`,
      labels: [
        ['domain', '$1'],
        ['key1', '$2'],
        ['key2', '$3'],
      ],
    });
  }
  const counter = { kind: 'counter' } as const;
  rules.push(
    glob('ratelimit.service.call.should_rate_limit.*', {
      ...counter,
      name: 'ratelimit_service_should_rate_limit_error',
      labels: [['err_type', '$1']],
    }),
    glob('ratelimit_server.*.total_requests', {
      ...counter,
      name: 'ratelimit_service_total_requests',
      labels: [['grpc_method', '$1']],
    }),
    glob('ratelimit_server.*.response_time', {
      name: 'ratelimit_service_response_time_seconds',
      scale: millis ? 1 : 0.001,
      labels: [['grpc_method', '$1']],
    }),
    glob('ratelimit.service.config_load_success', {
      ...counter,
      name: 'ratelimit_service_config_load_success',
    }),
    glob('ratelimit.service.config_load_error', { ...counter, name: 'ratelimit_service_config_load_error' }),
  );
  return { rules, mostSpecificGlob: false, observer: DEFAULT_SUMMARY };
}
