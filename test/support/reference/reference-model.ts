import { CODE, type Descriptor, type DescriptorStatus, LIMIT_UNIT } from '../../../src/codec/messages.js';

/** A window rule: `rN` matches descriptors with a single entry whose key is `rN`. */
export interface ModelRule {
  readonly unit: 'second' | 'minute' | 'hour';
  readonly limit: number;
  readonly unlimited: boolean;
  readonly shadow: boolean;
  readonly quota: boolean;
  /** Index of a rule that this rule replaces. */
  readonly replaces: number | undefined;
}

export interface ModelModes {
  readonly shadowMode: boolean;
  readonly quotaMode: boolean;
}

export interface ModelAnswer {
  readonly overallCode: number;
  readonly statuses: readonly DescriptorStatus[];
  /** Values of the headers for limit, remaining and reset. */
  readonly headers: readonly string[];
  /** Indexes of the rules whose metadata the answer contains. */
  readonly passed: readonly number[];
  /** Whether SHADOW_MODE changed OVER_LIMIT to OK. */
  readonly globalShadow: boolean;
}

const SECONDS = { second: 1, minute: 60, hour: 3600 } as const;
const UNITS = ['second', 'minute', 'hour'] as const;
const UNLIMITED = 0xffff_ffff;

interface Limit {
  readonly name: string;
  readonly unit: ModelRule['unit'];
  readonly limit: number;
  readonly shadow: boolean;
  readonly quota: boolean;
  readonly rule: number | undefined;
}

/**
 * Model of the answers of envoyproxy/ratelimit for window rules. It restates the source (src/service/ratelimit.go,
 * src/limiter/base_limiter.go) as simply as possible, and tests compare weir with it. Different counters have different
 * keys here, too.
 */
export class ReferenceModel {
  readonly #rules: readonly ModelRule[];
  readonly #modes: ModelModes;
  readonly #counters = new Map<string, number>();

  constructor(rules: readonly ModelRule[], modes: ModelModes) {
    this.#rules = rules;
    this.#modes = modes;
  }

  answer(descriptors: readonly Descriptor[], requestHits: number, epochSeconds: number): ModelAnswer {
    const limits = this.#limits(descriptors);
    const statuses = descriptors.map((descriptor, i) => {
      const limit = limits[i];
      if (limit === 'unlimited') return status(CODE.OK, undefined, UNLIMITED, epochSeconds);
      if (limit === undefined) return status(CODE.OK, undefined, 0, epochSeconds);
      const window = Math.floor(epochSeconds / SECONDS[limit.unit]);
      const key = [descriptor.entries[0]?.key, limit.rule ?? `${limit.limit}/${limit.unit}`, window].join(
        ' ',
      );
      const count = (this.#counters.get(key) ?? 0) + (descriptor.hitsAddend ?? Math.max(1, requestHits));
      this.#counters.set(key, count);
      const over = count > limit.limit;
      const code = over && !limit.shadow ? CODE.OVER_LIMIT : CODE.OK;
      return status(code, limit, over ? 0 : limit.limit - count, epochSeconds);
    });
    return this.#overall(limits, statuses);
  }

  #limits(descriptors: readonly Descriptor[]): readonly (Limit | 'unlimited' | undefined)[] {
    const replaced = new Set<number>();
    const limits = descriptors.map(({ entries, limit }): Limit | 'unlimited' | undefined => {
      const index = this.#rules.findIndex((_rule, i) => entries[0]?.key === `r${i}`);
      if (limit !== undefined) {
        const unit = UNITS[limit.unit - 1] ?? 'second';
        const none = { name: '', shadow: false, quota: false, rule: undefined };
        return { ...none, unit, limit: limit.requestsPerUnit };
      }
      const rule = this.#rules[index];
      if (rule === undefined) return undefined;
      if (rule.replaces !== undefined) replaced.add(rule.replaces);
      return rule.unlimited ? 'unlimited' : { ...rule, name: `n${index}`, rule: index };
    });
    return limits.map((limit) =>
      typeof limit === 'object' && limit.rule !== undefined && replaced.has(limit.rule) ? undefined : limit,
    );
  }

  #overall(
    limits: readonly (Limit | 'unlimited' | undefined)[],
    statuses: readonly DescriptorStatus[],
  ): ModelAnswer {
    const passed: number[] = [];
    let described: DescriptorStatus | undefined;
    let least = UNLIMITED;
    let failed = 0;
    let quotas = 0;
    let failedQuotas = 0;
    statuses.forEach((one, i) => {
      const limit = limits[i];
      if (one.currentLimit !== undefined && one.limitRemaining < least) {
        described = one;
        least = one.limitRemaining;
      }
      if (limit === 'unlimited') return;
      const quota = this.#modes.quotaMode || limit?.quota === true;
      if (quota) quotas++;
      if (one.code !== CODE.OVER_LIMIT) {
        if (limit?.rule !== undefined) passed.push(limit.rule);
      } else if (quota) failedQuotas++;
      else {
        failed++;
        described = one;
        least = 0;
      }
    });
    const denied = failed > 0 || (quotas > 0 && quotas === failedQuotas);
    const { currentLimit, limitRemaining, durationUntilResetSeconds } = described ?? {};
    return {
      overallCode: denied && !this.#modes.shadowMode ? CODE.OVER_LIMIT : CODE.OK,
      statuses,
      headers:
        currentLimit === undefined
          ? []
          : [currentLimit.requestsPerUnit, limitRemaining, durationUntilResetSeconds].map(String),
      passed,
      globalShadow: denied && this.#modes.shadowMode,
    };
  }
}

function status(
  code: DescriptorStatus['code'],
  limit: Limit | undefined,
  limitRemaining: number,
  epochSeconds: number,
): DescriptorStatus {
  if (limit === undefined) {
    return { code, currentLimit: undefined, limitRemaining, durationUntilResetSeconds: undefined };
  }
  const { name, unit } = limit;
  const seconds = SECONDS[unit];
  return {
    code,
    currentLimit: { name, requestsPerUnit: limit.limit, unit: LIMIT_UNIT[unit] },
    limitRemaining,
    durationUntilResetSeconds: seconds - (epochSeconds % seconds),
  };
}
