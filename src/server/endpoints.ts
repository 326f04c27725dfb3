import { Registry } from 'prom-client';
import { dump } from '../config/dump.js';
import { dumpJson } from '../config/dump-json.js';
import { dumpTree } from '../config/dump-tree.js';
import type { DomainStatus, PolicySet } from '../config/policy.js';
import type { Clock } from '../limiter/clock.js';
import { phaseAt } from '../limiter/rule.js';
import { type HttpAnswer, type HttpEndpoint, json, text } from './http.js';
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
  /** Each domain that files name, sorted; `phase` is absent of one that is not in force. */
  readonly domains: readonly (DomainStatus & { readonly phase?: string })[];
  /** `ok`, or `error` while an older policy is in force because the one on disk is bad. */
  readonly lastReload: 'ok' | 'error';
  readonly errors: readonly unknown[];
}

/** The policy part of `/healthcheck?detail`. */
export function policyDetail(policies: Policies, clock: Clock): PolicyDetail {
  const errors = policies.errors();
  return {
    version: policies.current()?.version ?? 'none',
    domains: policies.domains().map((status) => {
      const inForce = policies.current()?.domains.get(status.domain);
      return inForce === undefined
        ? status
        : { ...status, phase: phaseAt(inForce.phase, clock.wallMicros()) };
    }),
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
      answer: ({ query }) => {
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

/** What the debug port shows. */
export interface DebugSource {
  readonly clock: Clock;
  readonly policies: Pick<Policies, 'current' | 'domains' | 'errors'>;
  /** Statistics under the reference's names, lines of `name: value`. */
  statsText?(): string | Promise<string>;
}

/** Endpoints on DEBUG_PORT. */
export function debugEndpoints({ clock, policies, statsText }: DebugSource): readonly HttpEndpoint[] {
  const endpoints: HttpEndpoint[] = [
    {
      path: '/rlconfig',
      help: 'the policies in force, a line for each rule; ?format=json or tree for all of them',
      answer: ({ query }) => {
        const inForce = policies.current();
        const wallMicros = clock.wallMicros();
        switch (query.get('format')) {
          case null:
            return text(200, inForce === undefined ? '' : dump(inForce));
          case 'tree':
            return text(200, inForce === undefined ? '' : dumpTree(inForce, wallMicros));
          case 'json':
            return json(200, dumpJson(inForce, policies.domains(), policies.errors(), wallMicros));
          default:
            return text(400, 'format is json or tree, or left out\n');
        }
      },
    },
  ];
  if (statsText !== undefined) {
    endpoints.push({
      path: '/stats',
      help: 'statistics under the names of envoyproxy/ratelimit',
      answer: async () => text(200, await statsText()),
    });
  }
  return [{ path: '/', help: 'this list', answer: () => text(200, listOf(endpoints)) }, ...endpoints];
}

/** A line for each endpoint, sorted by path. */
function listOf(endpoints: readonly HttpEndpoint[]): string {
  const lines = endpoints.map(({ path, help }) => `${path}: ${help}\n`);
  return lines.sort().join('');
}

/** What the debug port says of any other path. */
export function debugNotFound(path: string, endpoints: readonly HttpEndpoint[]): HttpAnswer {
  if (path.startsWith('/debug/pprof')) {
    return text(
      404,
      'pprof is for Go programs; for a profile start weir with NODE_OPTIONS=--cpu-prof, or send it SIGUSR1 and open chrome://inspect\n',
    );
  }
  return text(404, `not found; here are\n${listOf(endpoints)}`);
}
