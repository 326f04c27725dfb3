import { entriesAt, itemsAt, manifestsOf, textAt, valueAt } from '../../config/manifests/manifest.js';
import { ProblemList } from '../../config/yaml/config-problem.js';
import type { YamlMap, YamlValue } from '../../config/yaml/yaml-document.js';
import { parseYamlPart, scalarPart } from '../../config/yaml/yaml-part.js';
import { quantity } from '../../quantity.js';
import { emptyVariables } from '../env-file.js';
import type { Finding } from '../findings.js';
import { containerVariables } from './container-variables.js';
import type { Input } from './input.js';
import { type Deployed, type Environment, NO_ENVIRONMENT, type Workload, type YamlPath } from './workload.js';

type GatewayForm = Extract<Deployed, { by: 'envoy-gateway' }>['as'];

/** A configuration of Envoy Gateway, and how the controller receives it. */
interface Found {
  readonly fields: YamlMap;
  readonly as: GatewayForm;
}

/** Path of the settings for Envoy Gateway's rate limit deployment (EnvoyGateway, v1alpha1). */
const DEPLOYMENT: YamlPath = ['provider', 'kubernetes', 'rateLimitDeployment'];

/**
 * Variables that Envoy Gateway always sets for the service (internal/infrastructure/kubernetes/ratelimit/resource.go,
 * August 2026).
 */
export const GATEWAY_VARIABLES = {
  RUNTIME_ROOT: '/data',
  RUNTIME_SUBDIRECTORY: 'ratelimit',
  RUNTIME_IGNOREDOTFILES: 'true',
  RUNTIME_WATCH_ROOT: 'false',
  LOG_LEVEL: 'info',
  USE_STATSD: 'false',
  CONFIG_TYPE: 'GRPC_XDS_SOTW',
  CONFIG_GRPC_XDS_SERVER_URL: 'envoy-gateway:18001',
  CONFIG_GRPC_XDS_NODE_ID: 'envoy-ratelimit',
  GRPC_SERVER_USE_TLS: 'true',
  GRPC_SERVER_TLS_CERT: '/certs/tls.crt',
  GRPC_SERVER_TLS_KEY: '/certs/tls.key',
  CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
  CONFIG_GRPC_XDS_CLIENT_TLS_CERT: '/certs/tls.crt',
  CONFIG_GRPC_XDS_CLIENT_TLS_KEY: '/certs/tls.key',
  CONFIG_GRPC_XDS_SERVER_TLS_CACERT: '/certs/ca.crt',
  FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
  REDIS_SOCKET_TYPE: 'tcp',
};

/** Returns the services in an input's Envoy Gateway configurations, which are documents or strings in a ConfigMap. */
export function gatewayServices(input: Input): readonly Workload[] {
  const found = manifestsOf(input.documents).flatMap(({ kind, fields }): readonly Found[] => {
    if (kind === 'EnvoyGateway') return [{ fields, as: 'file' }];
    if (kind !== 'ConfigMap') return [];
    return entriesAt(fields, 'data').flatMap(([, value]) => {
      const inner = configurationIn(input, value);
      return inner === undefined ? [] : [{ fields: inner, as: 'manifest' }];
    });
  });
  return found.map(({ fields, as }) => gatewayService(input, fields, [], as));
}

function configurationIn(input: Input, value: YamlValue): YamlMap | undefined {
  if (value.kind !== 'scalar' || !/\bkind["']?:\s*["']?EnvoyGateway\b/.test(value.text)) return undefined;
  const inner = parseYamlPart(scalarPart(value, input.lines), new ProblemList(input.file));
  return inner?.kind === 'map' ? inner : undefined;
}

/** Returns the service of the configuration at `path` in `root`. */
export function gatewayService(input: Input, root: YamlMap, path: YamlPath, as: GatewayForm): Workload {
  const configuration = valueAt(root, ...path);
  const container = valueAt(configuration, ...DEPLOYMENT, 'container');
  return {
    input,
    title: "Envoy Gateway's rate limit service",
    names: ['envoy-gateway'],
    image: textAt(container, 'image') || 'envoyproxy/ratelimit',
    command: ['/bin/ratelimit'],
    environment: gatewayVariables(configuration, container),
    mounts: [],
    same: [],
    decide: findingsOf(configuration, input.file),
    edit: {
      root,
      image: [...path, ...DEPLOYMENT, 'container', 'image'],
      variables: [...path, ...DEPLOYMENT, 'container', 'env'],
      form: 'names-and-values',
      drop: [],
    },
    deployed: { by: 'envoy-gateway', as },
  };
}

function gatewayVariables(
  configuration: YamlValue | undefined,
  container: YamlValue | undefined,
): Environment {
  const limits = valueAt(configuration, 'rateLimit');
  const variables = emptyVariables(GATEWAY_VARIABLES);
  const url = textAt(limits, 'backend', 'redis', 'url');
  if (url !== '') variables['REDIS_URL'] = url;
  if (valueAt(limits, 'backend', 'redis', 'tls') !== undefined) variables['REDIS_TLS'] = 'true';
  if (textAt(limits, 'telemetry', 'metrics', 'prometheus', 'disable') !== 'true') {
    variables['USE_PROMETHEUS'] = 'true';
    variables['PROMETHEUS_ADDR'] = ':19001';
  }
  if (valueAt(limits, 'telemetry', 'tracing') !== undefined) variables['TRACING_ENABLED'] = 'true';
  const own = container === undefined ? NO_ENVIRONMENT : containerVariables(container, []);
  const merged = emptyVariables({ ...variables, ...own.variables });
  for (const name of own.unknown) delete merged[name];
  return { ...own, variables: merged };
}

function findingsOf(configuration: YamlValue | undefined, file: string): readonly Finding[] {
  const findings: Finding[] = [];
  if (textAt(configuration, 'rateLimit', 'backend', 'redis', 'url') === '') {
    const text =
      'rateLimit.backend.redis.url is not set, so Envoy Gateway does not run a rate limit service. To ' +
      'run weir, set this field. No service is running yet, so you do not need to migrate one.';
    findings.push({ about: file, text });
  }
  const patch = valueAt(configuration, ...DEPLOYMENT, 'patch');
  if (patch !== undefined) {
    const text =
      "this patch changes the service's Deployment. weir migrate does not read the patch. Check that " +
      'the patch does not set an image.';
    findings.push({ about: `${file}: rateLimitDeployment.patch`, text });
  }
  return findings;
}

/** Reports policies and proxies of Envoy Gateway, which need no change. */
export function gatewayPolicies(input: Input): readonly Finding[] {
  return manifestsOf(input.documents).flatMap(({ kind, name, fields }): readonly Finding[] => {
    if (kind === 'EnvoyProxy')
      return [
        { about: `EnvoyProxy ${name}`, text: 'this resource configures Envoy, not the rate limit service.' },
      ];
    if (kind !== 'BackendTrafficPolicy') return [];
    const about = `BackendTrafficPolicy ${name}`;
    const global = itemsAt(fields, 'spec', 'rateLimit', 'global', 'rules').length;
    const local = itemsAt(fields, 'spec', 'rateLimit', 'local', 'rules').length;
    return [
      ...(global > 0
        ? [
            {
              about,
              text: `Envoy Gateway sends ${quantity(global, 'rule')} over xDS. weir enforces global rules as before.`,
            },
          ]
        : []),
      ...(local > 0
        ? [
            {
              about,
              text: `Envoy enforces ${quantity(local, 'rule')} locally, without a rate limit service.`,
            },
          ]
        : []),
    ];
  });
}
