import { Registry } from '@prometheus-io/client';
import { type AdminService, adminEndpoint, DebugPortAccess } from '../../admin/admin-access.js';
import type { DifferingWorker, HealthDetail, HealthVerdict } from '../../admin/health-detail.js';
import { pageAnswer } from '../../admin/page/page-document.js';
import type { LoadingPolicyProvider } from '../../config/policy-provider.js';
import type { ConfigForm } from '../../config/show/dump.js';
import { renderConfig } from '../../config/threads/policy-task.js';
import { formatHostPort } from '../../grpc/grpc-server.js';
import { guardedViews, isLoopbackHost } from '../../http/cross-site.js';
import {
  type HttpAnswer,
  type HttpEndpoint,
  type HttpHead,
  type HttpOptions,
  JSON_TYPE,
  listenHttp,
  TEXT_TYPE,
  text,
} from '../../http/http.js';
import { RenderQueue, TextView } from '../../http/text-view.js';
import type { Clock } from '../../limiter/clock.js';
import type { PolicySet } from '../../policy/compiled-policy.js';
import { phaseAt } from '../../policy/rule.js';
import type { Closers } from '../../runtime/closers.js';
import type { Logger } from '../../telemetry/logger.js';
import type { AdminCounter } from '../../telemetry/metrics.js';
import { requestBounds } from '../answer-options.js';
import type { GrpcService } from '../grpc-service.js';
import { parseListenAddress, servesReference } from '../settings/settings-check.js';
import type { Settings } from '../settings/settings-table.js';
import { listenError, StartError } from '../start-error.js';
import { jsonEndpoint } from './json-endpoint.js';
import type { DebugFiles } from './tokens-file.js';

type ShownPolicies = Pick<LoadingPolicyProvider, 'current' | 'domains' | 'errors'>;

export function healthText(detail: HealthDetail, policies: ShownPolicies, clock: Clock): string {
  const errors = policies.errors();
  const phases = new Map(
    domainPhases(policies.current(), clock).map(({ domain, phase }) => [domain, { phase }]),
  );
  const policy = {
    // Without any valid policy so far, no version exists.
    version: policies.current()?.version ?? 'none',
    // A domain that is not in effect has no phase.
    domains: policies
      .domains()
      .map(({ domain, files, state }) => ({ domain, files, state, ...phases.get(domain) })),
    // `error` while an older version is in effect because the current files are invalid.
    lastReload: errors.length === 0 ? 'ok' : 'error',
    errors,
  };
  return `${JSON.stringify({ ...detail, policy }, null, 2)}\n`;
}

export function domainPhases(
  policies: PolicySet | undefined,
  clock: Clock,
): readonly { readonly domain: string; readonly phase: string }[] {
  const wallMicros = clock.wallMicros();
  return [...(policies?.domains.values() ?? [])].map(({ domain, phase }) => ({
    domain,
    phase: phaseAt(phase, wallMicros),
  }));
}

/** Returns `/healthcheck`, with `detail` as the body of `/healthcheck?detail`. `health` is fast, because probes are. */
function healthEndpoint(health: () => HealthVerdict, detail: TextView): HttpEndpoint {
  return {
    path: '/healthcheck',
    help: 'OK, or 500 if this server should not receive requests; ?detail returns details as JSON',
    // Health probes may send any host name. Envoy sends the name of the cluster.
    exposesData: ({ query }) => query.has('detail'),
    answer: async ({ query }) => {
      const body = query.has('detail') ? await detail.text() : undefined;
      const { status: verdict, reason } = health();
      const status = verdict === 'SERVING' ? 200 : 500;
      if (body !== undefined) return { status, contentType: JSON_TYPE, body };
      return text(status, status === 200 ? 'OK' : `${reason}\n`);
    },
  };
}

function metricsEndpoint(path: string, metrics: TextView): HttpEndpoint {
  return {
    path,
    help: 'Prometheus metrics',
    answer: async () => ({
      status: 200,
      contentType: Registry.PROMETHEUS_CONTENT_TYPE,
      body: await metrics.text(),
    }),
  };
}

/** Data that the endpoints on DEBUG_PORT show. */
interface DebugSource {
  readonly policies: ShownPolicies;
  /** Statistics with the reference's names, as lines of `name: value`. */
  stats(): Promise<string>;
  differing(): readonly DifferingWorker[];
}

/** Returns the endpoints on DEBUG_PORT: those for operators (`administration`) and others. */
function debugEndpoints(
  { policies, stats, differing }: DebugSource,
  clock: Clock,
  queue: RenderQueue,
  administration: readonly HttpEndpoint[],
): readonly HttpEndpoint[] {
  // Other texts need not wait for a thread that renders a large policy.
  const configQueue = new RenderQueue();
  const configView = (form: ConfigForm): TextView =>
    new TextView(configQueue, () =>
      renderConfig(form, {
        policySet: policies.current(),
        domains: policies.domains(),
        errors: policies.errors(),
        wallMicros: clock.wallMicros(),
        differing: differing(),
      }),
    );
  const lines = configView('lines');
  const tree = configView('tree');
  const asJson = configView('json');
  const statistics = new TextView(queue, stats);
  const endpoints: readonly HttpEndpoint[] = [
    {
      path: '/rlconfig',
      help: 'the policies in effect, one line for each rule; ?format=json or ?format=tree shows complete policies',
      answer: async ({ query }) => {
        switch (query.get('format')) {
          case null:
            return { status: 200, contentType: TEXT_TYPE, body: await lines.text() };
          case 'tree':
            return { status: 200, contentType: TEXT_TYPE, body: await tree.text() };
          case 'json':
            return { status: 200, contentType: JSON_TYPE, body: await asJson.text() };
          default:
            return text(400, 'format must be json or tree, or omitted\n');
        }
      },
    },
    {
      path: '/stats',
      help: 'statistics with the names that envoyproxy/ratelimit uses',
      answer: async () => ({ status: 200, contentType: TEXT_TYPE, body: await statistics.text() }),
    },
    ...administration,
  ];
  const first: HttpEndpoint = {
    path: '/',
    help: 'this list; browsers get a web page',
    // The list and the page contain no data of this server.
    exposesData: () => false,
    answer: ({ headers }) =>
      wantsPage(headers) ? pageAnswer() : text(200, endpointList([first, ...endpoints]), VARY_BY_ACCEPT),
  };
  return [first, ...endpoints];
}

/** The list and the page share an address. */
const VARY_BY_ACCEPT = { vary: 'accept' };

/** Returns whether the client accepts HTML, as browsers do. curl accepts any type. */
function wantsPage({ accept = '' }: HttpHead['headers']): boolean {
  return /(?:^|[\s,])text\/html(?:[\s;,]|$)/i.test(accept);
}

function endpointList(endpoints: readonly HttpEndpoint[]): string {
  const lines = endpoints.map(({ path, help }) => `${path}: ${help}\n`);
  return lines.sort().join('');
}

function debugNotFound(path: string, endpoints: readonly HttpEndpoint[]): HttpAnswer {
  if (path.startsWith('/debug/pprof')) {
    return text(
      404,
      'pprof is available only in Go programs; for a profile, start weir with NODE_OPTIONS=--cpu-prof, ' +
        'or send SIGUSR1 to weir and open chrome://inspect\n',
    );
  }
  return text(404, `not found; the available paths are:\n${endpointList(endpoints)}`);
}

/** Dependencies of all HTTP ports of a process. */
export interface HttpPortsOptions {
  readonly settings: Settings;
  readonly clock: Clock;
  readonly log: Logger;
  /** Metrics in Prometheus' text format. */
  metrics(): Promise<Buffer>;
}

export interface DebugPortOptions extends DebugSource {
  readonly administration: readonly AdminService[];
  readonly debugFiles: DebugFiles;
  /** Counts refused operators. */
  readonly count: AdminCounter;
}

export interface OpenPort {
  /** `host:port`. */
  readonly address: string;
  /**
   * Accepts no further requests of `/json` and of operators. Resolves when the running ones have ended, or after
   * `graceMs`.
   */
  drain(graceMs: number): Promise<void>;
}

/** Opens the HTTP ports of a process. They share the bounds on texts that are rendered. */
export class HttpPorts {
  readonly #options: HttpPortsOptions;
  readonly #closers: Closers;
  readonly #queue = new RenderQueue();
  readonly #metrics: TextView;

  constructor(options: HttpPortsOptions, closers: Closers) {
    this.#options = options;
    this.#closers = closers;
    this.#metrics = new TextView(this.#queue, () => options.metrics());
  }

  /**
   * Opens PORT, where `service` also decides requests. `detail` returns the body of `/healthcheck?detail`. Rejects with
   * {@link StartError}.
   */
  openPublic(
    { decide, metrics }: Pick<GrpcService, 'decide' | 'metrics'>,
    health: () => HealthVerdict,
    detail: () => Promise<string | Buffer>,
  ): Promise<OpenPort> {
    const { settings, clock } = this.#options;
    const { host, port } = settings;
    const forJson = jsonEndpoint({
      decide,
      bounds: requestBounds(settings),
      isOnLoopback: isLoopbackHost(host),
      metrics,
      monotonicMicros: () => clock.monotonicMicros(),
    });
    const endpoints = [
      healthEndpoint(health, new TextView(this.#queue, detail)),
      metricsEndpoint('/metrics', this.#metrics),
      forJson,
    ];
    return this.#open('HTTP', host, port, 'HOST, PORT', { endpoints });
  }

  /** Opens DEBUG_PORT. Rejects with {@link StartError}. */
  openDebug({ administration, debugFiles, count, ...source }: DebugPortOptions): Promise<OpenPort> {
    const { settings, clock, log } = this.#options;
    const { debugHost, debugPort } = settings;
    const { tls, tokens } = debugFiles;
    const access = new DebugPortAccess({
      debugHost,
      tls: tls !== undefined,
      tokens,
      log,
      count,
      monotonicMicros: () => clock.monotonicMicros(),
    });
    const services = administration.map((one) => adminEndpoint(one, access));
    const endpoints = debugEndpoints(source, clock, this.#queue, services);
    return this.#open('the debug endpoints', debugHost, debugPort, 'DEBUG_HOST, DEBUG_PORT', {
      endpoints,
      tls,
      notFound: (path) => debugNotFound(path, endpoints),
    });
  }

  /** Opens PROMETHEUS_ADDR, if USE_PROMETHEUS is on. Resolves with the address. Rejects with {@link StartError}. */
  async openPrometheus(): Promise<string | undefined> {
    const { settings } = this.#options;
    if (!servesReference(settings)) return undefined;
    const { prometheusAddr, prometheusPath: path } = settings;
    const target = parseListenAddress(prometheusAddr);
    if (target === undefined) {
      const shown = JSON.stringify(prometheusAddr);
      throw new StartError([
        `PROMETHEUS_ADDR: ${shown} is not a valid address; use an address such as :9090 or 127.0.0.1:9090`,
      ]);
    }
    if (!path.startsWith('/')) {
      throw new StartError([
        `PROMETHEUS_PATH: ${JSON.stringify(path)} does not begin with a slash; use a path such as /metrics`,
      ]);
    }
    const { host, port } = target;
    const endpoints = [metricsEndpoint(path, this.#metrics)];
    const { address } = await this.#open('metrics', host, port, 'PROMETHEUS_ADDR', { endpoints });
    return host === '' ? `*${address}` : address;
  }

  readonly #onError = (error: unknown): void => this.#options.log.error({ err: error }, 'unexpected error');

  async #open(
    what: string,
    host: string,
    port: number,
    variables: string,
    http: Pick<HttpOptions, 'endpoints' | 'notFound' | 'tls'>,
  ): Promise<OpenPort> {
    const listener = await listenHttp(host, port, {
      ...http,
      endpoints: guardedViews(host, http.endpoints),
      onError: this.#onError,
    }).catch((error: unknown) => {
      throw listenError(what, formatHostPort(host, port), variables, error);
    });
    this.#closers.add(() => listener.close());
    return {
      address: formatHostPort(host, listener.port),
      drain: (graceMs) => listener.drain(graceMs),
    };
  }
}
