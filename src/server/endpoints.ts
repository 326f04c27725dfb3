import { Registry } from 'prom-client';
import { dump } from '../config/dump.js';
import { dumpTree } from '../config/dump-tree.js';
import type { PolicySet } from '../config/policy.js';
import type { Clock } from '../limiter/clock.js';
import { phaseAt } from '../limiter/rule.js';
import { type HttpEndpoint, json, text } from './http.js';
import type { Policies } from './policies.js';

/** What `/healthcheck?detail` shows. Rules are not in it: PORT may be open to more people than the policy is. */
export interface HealthDetail {
  readonly status: 'SERVING' | 'NOT_SERVING';
  /** Why not; absent when SERVING. */
  readonly reason?: string;
  readonly version: string;
  readonly uptimeSeconds: number;
  readonly store: string;
  readonly storeUp: boolean;
  /** With WORKERS above 1, one each. */
  readonly workers?: readonly {
    readonly id: number;
    readonly pid: number;
    readonly status: 'SERVING' | 'NOT_SERVING';
    readonly storeUp: boolean;
  }[];
  readonly policy: PolicyDetail;
}

interface PolicyDetail {
  /** `none` while no policy was ever good. */
  readonly version: string;
  readonly domains: readonly { readonly domain: string; readonly phase: string }[];
  /** `ok`, or `error` while an older policy is in force because the one on disk is bad. */
  readonly lastReload: 'ok' | 'error';
  readonly errors: readonly unknown[];
}

/** The policy part of `/healthcheck?detail`. */
export function policyDetail(policies: Policies, clock: Clock): PolicyDetail {
  const errors = policies.errors();
  return {
    version: policies.current()?.version ?? 'none',
    domains: domainsOf(policies.current(), clock),
    lastReload: errors.length === 0 ? 'ok' : 'error',
    errors,
  };
}

/** Domains and the phase each file has now. */
export function domainsOf(
  policies: PolicySet | undefined,
  clock: Clock,
): readonly { readonly domain: string; readonly phase: string }[] {
  const wallMicros = clock.wallMicros();
  return [...(policies?.domains.values() ?? [])].map(({ domain, phase }) => ({
    domain,
    phase: phaseAt(phase, wallMicros),
  }));
}

/** Endpoints on PORT. */
export function publicEndpoints(source: {
  metricsText(): Promise<string>;
  detail(): HealthDetail;
}): readonly HttpEndpoint[] {
  return [
    {
      path: '/healthcheck',
      help: 'OK, or 500 when this server should get no requests; ?detail for more, as JSON',
      answer: (query) => {
        const health = source.detail();
        const status = health.status === 'SERVING' ? 200 : 500;
        if (query.has('detail')) return json(status, health);
        return text(status, status === 200 ? 'OK' : `${health.reason}\n`);
      },
    },
    metricsEndpoint('/metrics', () => source.metricsText()),
  ];
}

/** Metrics in Prometheus' text format. */
export function metricsEndpoint(path: string, metricsText: () => Promise<string>): HttpEndpoint {
  return {
    path,
    help: 'metrics for Prometheus',
    answer: async () => ({
      status: 200,
      contentType: Registry.PROMETHEUS_CONTENT_TYPE,
      body: await metricsText(),
    }),
  };
}

/** Endpoints on DEBUG_PORT. */
export function debugEndpoints(policies: () => PolicySet | undefined, clock: Clock): readonly HttpEndpoint[] {
  const endpoints: HttpEndpoint[] = [
    {
      path: '/rlconfig',
      help: 'the policies in force, a line for each rule; ?format=tree for all of them',
      answer: (query) => {
        const inForce = policies();
        if (inForce === undefined) return text(200, '');
        const asTree = query.get('format') === 'tree';
        return text(200, asTree ? dumpTree(inForce, clock.wallMicros()) : dump(inForce));
      },
    },
  ];
  const list: HttpEndpoint = {
    path: '/',
    help: 'this list',
    answer: () => text(200, [list, ...endpoints].map(({ path, help }) => `${path}: ${help}\n`).join('')),
  };
  return [list, ...endpoints];
}
