import type { OpenedPart } from '../../config/manifests/config-maps.js';
import { entriesAt, textAt, valueAt } from '../../config/manifests/manifest.js';
import { openDocument, openPart } from '../../config/read/policy-source.js';
import { ProblemList } from '../../config/yaml/config-problem.js';
import { joinPath, type YamlMap, type YamlValue } from '../../config/yaml/yaml-document.js';
import { scalarPart } from '../../config/yaml/yaml-part.js';
import { VARIABLES } from '../../server/settings/settings-table.js';
import { emptyVariables } from '../env-file.js';
import type { Finding } from '../findings.js';
import { containerVariables } from './container-variables.js';
import { gatewayService } from './envoy-gateway.js';
import type { Input } from './input.js';
import type { Environment, Workload, YamlPath } from './workload.js';

/** Maximum depth of the search for images and policies in values. */
const MAX_DEPTH = 6;

/** Keys under which charts accept variables. */
const VARIABLE_KEYS = ['env', 'extraEnv', 'extraEnvs', 'extraEnvVars', 'envVars', 'environment'];

/** Variables for which charts of the reference have their own keys. */
const CHART_KEYS: readonly (readonly [variable: string, ...paths: readonly (readonly string[])[]])[] = [
  ['REDIS_URL', ['redisUrl'], ['redisURL'], ['redis', 'url']],
  ['REDIS_SOCKET_TYPE', ['redisSocketType']],
  ['LOG_LEVEL', ['logLevel'], ['log', 'level']],
  ['LOG_FORMAT', ['logFormat'], ['log', 'format']],
  ['LOCAL_CACHE_SIZE_IN_BYTES', ['localCacheSize']],
  ['STATSD_HOST', ['statsdHost']],
  ['GRPC_PORT', ['grpcPort']],
  ['PORT', ['httpPort']],
  ['DEBUG_PORT', ['debugPort']],
];

/** Returns the services in Helm values: Envoy Gateway, and every mapping with an image. */
export function chartServices(input: Input): readonly Workload[] {
  return input.documents.flatMap((document) => {
    if (document.kind !== 'map') return [];
    const gateway = valueAt(document, 'config', 'envoyGateway');
    if (gateway?.kind === 'map')
      return [gatewayService(input, document, ['config', 'envoyGateway'], 'values')];
    return findCharts(input, document, document, []);
  });
}

function findCharts(input: Input, root: YamlMap, value: YamlValue, path: YamlPath): readonly Workload[] {
  if (value.kind !== 'map' || path.length > MAX_DEPTH) return [];
  const image = valueAt(value, 'image');
  const own = image === undefined ? [] : chartAt(input, root, value, path, image);
  const below = entriesAt(value).flatMap(([key, child]) =>
    key === 'image' ? [] : findCharts(input, root, child, [...path, key]),
  );
  return [...own, ...below];
}

function chartAt(
  input: Input,
  root: YamlMap,
  values: YamlMap,
  path: YamlPath,
  image: YamlValue,
): readonly Workload[] {
  const isText = image.kind === 'scalar';
  const name = isText ? image.text : textAt(image, 'repository');
  if (name === '') return [];
  const tag = isText ? '' : textAt(image, 'tag');
  const key = VARIABLE_KEYS.find((one) => valueAt(values, one) !== undefined) ?? 'env';
  const form = valueAt(values, key)?.kind === 'map' ? 'map-or-lines' : 'names-and-values';
  return [
    {
      input,
      title: path.length === 0 ? 'chart' : `chart's ${path.join('.')}`,
      names: [path.length === 0 ? 'chart' : path.join('.')],
      image: tag === '' ? name : `${name}:${tag}`,
      command: [],
      environment: chartVariables(values, key),
      mounts: [],
      same: [],
      decide: [
        {
          about: input.file,
          text:
            "the chart's templates may set variables that the values do not contain. Save the output of " +
            '`helm get manifest <release>` to a file, and also pass that file to `weir migrate`.',
        },
        ...registryFindings(input.file, image),
      ],
      edit: {
        root,
        image: [...path, 'image', ...(isText ? [] : ['repository'])],
        ...(!isText && { tag: [...path, 'image', 'tag'] }),
        variables: [...path, key],
        form,
        drop: [],
      },
      deployed: { by: 'chart' },
      policies: policiesBelow(input, values, path),
    },
  ];
}

/** Charts prepend `image.registry` to every image name, including weir's. */
function registryFindings(file: string, image: YamlValue): readonly Finding[] {
  const registry = textAt(image, 'registry');
  if (registry === '') return [];
  const text =
    `the chart adds the registry ${registry} ("image.registry") to every image name. Push the weir image ` +
    'to this registry, or change "image.registry".';
  return [{ about: file, text }];
}

/**
 * Returns the variables in the values. All other variables are unknown, because the templates of the chart may set
 * them.
 */
function chartVariables(values: YamlMap, key: string): Environment {
  const variables = emptyVariables();
  for (const [name, ...paths] of CHART_KEYS) {
    const text = paths.map((path) => textAt(values, ...path)).find((one) => one !== '');
    if (text !== undefined) variables[name] = text;
  }
  const port = textAt(values, 'redisPort');
  const url = variables['REDIS_URL'];
  if (url !== undefined && port !== '' && !url.includes(':')) variables['REDIS_URL'] = `${url}:${port}`;
  const listed = containerVariables({ kind: 'map', at: values.at, fields: envField(values, key) }, []);
  for (const [name, value] of entriesAt(values, key))
    if (value.kind === 'scalar') variables[name] = value.text;
  const known = emptyVariables({ ...variables, ...listed.variables });
  const unknown = new Set(VARIABLES.map(({ name }) => name).filter((name) => known[name] === undefined));
  return { ...listed, variables: known, unknown };
}

function envField(values: YamlMap, key: string): YamlMap['fields'] {
  const field = values.fields.get(key);
  return new Map(field === undefined ? [] : [['env', field]]);
}

/** Finds policies in the values, as strings, as mappings and as `descriptors: { <domain>: [...] }`. */
function policiesBelow(input: Input, values: YamlMap, path: YamlPath): readonly OpenedPart[] {
  return entriesAt(values).flatMap(([key, value]) => {
    const within = [...path, key].reduce<string>((joined, step) => joinPath(joined, String(step)), '');
    const problems = new ProblemList(input.file, within);
    const part = (opened: OpenedPart['opened']): OpenedPart => ({ name: `${input.file} ${within}`, opened });
    if (value.kind === 'scalar') {
      const isMeant = /^\s*(?:domain|descriptors)\s*:/m.test(value.text);
      return isMeant ? [part(openPart(scalarPart(value, input.lines), problems))] : [];
    }
    if (value.kind !== 'map') return [];
    if (value.fields.has('domain') && value.fields.has('descriptors'))
      return [part(openDocument(value, problems))];
    if (key === 'descriptors')
      return [...value.fields.keys()].map((domain) => domainPart(input, value, domain));
    return path.length < MAX_DEPTH ? policiesBelow(input, value, [...path, key]) : [];
  });
}

/** Returns the policy of a domain whose name is a key of `descriptors`. */
function domainPart(input: Input, domains: YamlMap, domain: string): OpenedPart {
  const field = domains.fields.get(domain);
  const at = field?.keyAt ?? domains.at;
  const name = { kind: 'scalar', text: domain, plain: false, at } as const;
  const fields: YamlMap['fields'] = new Map([
    ['domain', { key: 'domain', keyAt: at, index: 0, shown: true, value: name }],
    ...(field === undefined ? [] : [['descriptors', { ...field, key: 'descriptors' }] as const]),
  ]);
  const problems = new ProblemList(input.file, joinPath('descriptors', domain));
  return {
    name: `${input.file} descriptors.${domain}`,
    opened: openDocument({ kind: 'map', at, fields }, problems),
  };
}
