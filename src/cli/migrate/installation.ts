import { existsSync } from 'node:fs';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { readConfigFile } from '../../config/files/policy-paths.js';
import {
  entriesAt,
  itemsAt,
  type Manifest,
  manifestsOf,
  textAt,
  valueAt,
} from '../../config/manifests/config-maps.js';
import { isNull, type YamlMap, type YamlValue } from '../../config/yaml/yaml-document.js';
import { emptyVariables, readEnvFile } from './env-file.js';
import { type Input, InputError, readInput } from './input.js';
import { isDirectory } from './locate-policies.js';
import {
  type ChosenWorkload,
  chooseWorkload,
  Environment,
  healthFindings,
  type Workload,
} from './workload.js';

/** An installation of envoyproxy/ratelimit, as described by the files that the user named. */
export interface Installation {
  /** Directory that the user named. */
  readonly root: string | undefined;
  readonly inputs: readonly Input[];
  /** Workload that runs the service; undefined if no file contains a workload. */
  readonly pick: ChosenWorkload | undefined;
  /** Variables of the service. Variables in env files override those in other files. */
  readonly environment: Environment;
}

/** Reads the files and directories of an installation. Throws an {@link InputError} if they do not describe one. */
export function readInstallation(
  paths: readonly string[],
  envFiles: readonly string[],
  service: string | undefined,
): Installation {
  const [root, ...roots] = paths.filter(isDirectory);
  if (root !== undefined && roots.length > 0)
    throw new InputError(`specify only one directory, not ${[root, ...roots].join(' and ')}`);
  const inputs = [...new Set([...paths.filter((path) => !isDirectory(path)), ...envFiles])].map(readInput);
  const policy = inputs.find(({ file, format }) => format === 'policy' && envFiles.includes(file));
  if (policy !== undefined) {
    throw new InputError(
      `--env: "${policy.file}" is a policy and contains no variables; pass the file without --env`,
    );
  }
  const compose = root === undefined ? undefined : composeFileIn(root);
  if (root !== undefined && compose !== undefined) {
    throw new InputError(
      `"${root}" contains the compose file ${compose}, and not only policies; pass the compose file, and the ` +
        'directory of the policies',
    );
  }
  const workloads = [...composeServices(inputs), ...containers(inputs)];
  if (workloads.length === 0) rejectUnrelated(inputs, service);
  const pick = workloads.length === 0 ? undefined : chooseWorkload(workloads, service);
  const environment = pick?.workload.environment ?? new Environment();
  for (const { file, format, text } of inputs) if (format === 'variables') environment.addEnvFile(file, text);
  return { root, inputs, pick, environment };
}

/** Throws if files without a workload are of another kind, or if `--service` cannot have an effect. */
function rejectUnrelated(inputs: readonly Input[], service: string | undefined): void {
  if (service !== undefined) {
    throw new InputError(
      'the files contain no service, so --service has no effect; remove --service, or pass a file with the ' +
        'service',
    );
  }
  const gateway = inputs.find(({ text }) => /^\s*kind:\s*EnvoyGateway\s*$/m.test(text));
  if (gateway === undefined) return;
  throw new InputError(
    `"${gateway.file}" is the configuration of Envoy Gateway; pass the Deployment that Envoy Gateway creates: ` +
      '`kubectl get deployment -n envoy-gateway-system envoy-ratelimit -o yaml > ratelimit.yaml`',
  );
}

type Variables = Readonly<Record<string, string>>;

/** Names of files that compose looks for without `-f`, in order of preference. */
const DEFAULT_NAMES = ['compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml'];
const OVERRIDES = DEFAULT_NAMES.map((name) => name.replace('.y', '.override.y'));

const RESOLVE_ADVICE =
  'run `docker compose config > resolved.yaml` with your usual options, and pass only that file, which ' +
  'contains the values of all variables, including secrets';

/** Returns the name of the compose file that compose would use in a folder; undefined if no such file exists. */
function composeFileIn(folder: string): string | undefined {
  return DEFAULT_NAMES.find((name) => existsSync(join(folder, name)));
}

/** Returns the services of the compose file among the inputs (github.com/compose-spec/compose-spec, 05-services). */
function composeServices(inputs: readonly Input[]): readonly Workload[] {
  const [input, ...others] = inputs.filter(({ format }) => format === 'compose');
  if (input === undefined) return [];
  const folder = dirname(input.file);
  const override = DEFAULT_NAMES.includes(basename(input.file))
    ? OVERRIDES.find((name) => existsSync(join(folder, name)))
    : undefined;
  if (others.length > 0 || override !== undefined) {
    const other = others[0]?.file ?? join(folder, String(override));
    throw new InputError(
      `weir migrate does not merge the compose files ${input.file} and ${other}; ${RESOLVE_ADVICE}`,
    );
  }
  const dotEnvFile = join(folder, '.env');
  const dotEnv = existsSync(dotEnvFile) ? readEnvFile(readText(dotEnvFile)).variables : emptyVariables();
  return input.documents.flatMap((root) =>
    entriesAt(root, 'services').flatMap(([name, service]) =>
      service.kind === 'map' ? [readService(input, name, service, dotEnv)] : [],
    ),
  );
}

function readText(file: string): string {
  try {
    return readConfigFile(file).toString();
  } catch (error) {
    throw new InputError((error as Error).message);
  }
}

function readService(input: Input, name: string, service: YamlMap, dotEnv: Variables): Workload {
  const folder = dirname(input.file);
  const about = `${input.file}: ${name}`;
  const image = textAt(service, 'image');
  const environment = readEnvironment(service, folder, about, dotEnv);
  const mechanism =
    /!(?:reset|override)\b/.exec(input.text)?.[0] ?? (service.fields.has('extends') && 'extends');
  if (mechanism !== false) {
    environment.hideUnset();
    const text = `weir migrate does not support "${mechanism}", so unset variables are unknown; ${RESOLVE_ADVICE}.`;
    environment.decide.push({ about, text });
  }
  return {
    file: input.file,
    title: `service ${name}`,
    names: [name],
    image: interpolate(image, dotEnv) ?? image,
    command: [...words(service, 'command'), ...words(service, 'entrypoint')],
    environment,
    configMaps: [],
    decide: healthFindings(`${about}: healthcheck`, words(service, 'healthcheck', 'test')),
  };
}

function words(service: YamlMap, ...path: readonly string[]): readonly string[] {
  const list = itemsAt(service, ...path).flatMap((item) => (item.kind === 'scalar' ? [item.text] : []));
  return list.length > 0 ? list : [textAt(service, ...path)];
}

function readEnvironment(service: YamlMap, folder: string, about: string, dotEnv: Variables): Environment {
  const environment = new Environment();
  for (const path of envFiles(service, folder, dotEnv)) {
    try {
      environment.addEnvFile(path, readConfigFile(path).toString());
    } catch (error) {
      environment.hideAll();
      const text =
        `this file in "env_file" cannot be read (${(error as Error).message}), so its variables are ` +
        'unknown. Copy the deployed file to this path, and run weir migrate again.';
      environment.decide.push({ about: path, text });
    }
  }
  for (const [name, written] of ownVariables(service)) {
    const value = written === undefined ? dotEnv[name] : interpolate(written, dotEnv);
    environment.set(name, value);
    if (value !== undefined) continue;
    const sources =
      written === undefined ? [name] : [...written.matchAll(/\$\{?(\w+)/g)].map(([, source]) => source);
    const text =
      `the value of ${name} depends on ${sources.join(' and ')} in a way that weir migrate cannot resolve. ` +
      'Add the value to .env next to the compose file, which docker compose also reads, or write the value ' +
      'of the variable itself.';
    environment.decide.push({ about, text });
  }
  return environment;
}

/** Reads `environment`, a list or a mapping. An undefined value means the value in the shell. */
function ownVariables(service: YamlMap): readonly (readonly [string, string | undefined])[] {
  const lines = itemsAt(service, 'environment').flatMap((item) =>
    item.kind === 'scalar' ? [item.text] : [],
  );
  return [
    ...lines.map((line) => {
      const [name = '', ...rest] = line.split('=');
      return [name, rest.length === 0 ? undefined : rest.join('=')] as const;
    }),
    ...entriesAt(service, 'environment').flatMap(([name, value]) =>
      value.kind === 'scalar' ? [[name, isNull(value) ? undefined : value.text] as const] : [],
    ),
  ];
}

function envFiles(service: YamlMap, folder: string, dotEnv: Variables): readonly string[] {
  const written = valueAt(service, 'env_file');
  const all = written?.kind === 'list' ? written.items : written === undefined ? [] : [written];
  return all.map((one) => {
    const text = one.kind === 'scalar' ? one.text : textAt(one, 'path');
    const path = interpolate(text, dotEnv) ?? text;
    return isAbsolute(path) ? path : join(folder, path);
  });
}

/**
 * Replaces `${NAME}`, `${NAME:-default}`, `${NAME-default}`, `$NAME` and `$$`. Returns undefined if a variable without
 * a default is unset, and for other expressions.
 */
function interpolate(text: string, variables: Variables): string | undefined {
  let known = true;
  const replaced = text.replaceAll(
    /\$(?:(\$)|\{(\w+)(?:(:?)-([^}$]*))?\}|(\w+)|\{)/g,
    (_all, dollar?: string, braced?: string, colon?: string, word?: string, bare?: string) => {
      if (dollar !== undefined) return '$';
      const value = variables[braced ?? bare ?? ''];
      if (value !== undefined && !(colon === ':' && value === '')) return value;
      if (word === undefined) known = false;
      return word ?? '';
    },
  );
  return known ? replaced : undefined;
}

/** Kinds with long-running pods; all but Pod contain a pod template. */
const KINDS = ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'Pod'];
const PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe'];

const NOT_READ = 'weir gets this value as before, but weir migrate does not read it.';
const MISSING = "which is not in the given files or lacks this key; also pass the ConfigMap's manifest.";

/** Returns the containers in the manifests, which may refer to ConfigMaps in any of the inputs. */
function containers(inputs: readonly Input[]): readonly Workload[] {
  const all = inputs.flatMap(({ documents }) => manifestsOf(documents));
  return inputs.flatMap(({ file, documents }) =>
    manifestsOf(documents)
      .filter(({ kind }) => KINDS.includes(kind))
      .flatMap((manifest) => {
        const path = manifest.kind === 'Pod' ? ['spec'] : ['spec', 'template', 'spec'];
        const pod = valueAt(manifest.fields, ...path);
        return itemsAt(pod, 'containers').flatMap((container) =>
          container.kind === 'map' ? [readContainer(file, manifest, container, pod, all)] : [],
        );
      }),
  );
}

function readContainer(
  file: string,
  manifest: Manifest,
  container: YamlMap,
  pod: YamlValue | undefined,
  all: readonly Manifest[],
): Workload {
  const name = textAt(container, 'name');
  const owner = `${manifest.kind.toLowerCase()}/${manifest.name}`;
  return {
    file,
    title: `container ${name} of ${manifest.kind} ${manifest.name}`,
    names: [`${owner}/${name}`, owner, `${manifest.name}/${name}`, manifest.name, name],
    image: textAt(container, 'image'),
    command: ['command', 'args'].flatMap((key) => textsAt(container, key)),
    environment: new ContainerReader(container, all).environment,
    configMaps: mountedConfigMaps(pod),
    decide: PROBES.flatMap((probe) =>
      healthFindings(`container ${name}: ${probe}`, textsAt(container, probe, 'exec', 'command')),
    ),
  };
}

function textsAt(value: YamlValue, ...path: readonly string[]): readonly string[] {
  return itemsAt(value, ...path).flatMap((item) => (item.kind === 'scalar' ? [item.text] : []));
}

/** Reads the variables of a container (`envFrom`, `env`). The values of Secrets stay unknown. */
class ContainerReader {
  readonly environment = new Environment();
  private readonly manifests: readonly Manifest[];

  constructor(container: YamlMap, manifests: readonly Manifest[]) {
    this.manifests = manifests;
    for (const source of itemsAt(container, 'envFrom')) this.addAll(source);
    for (const item of itemsAt(container, 'env')) this.add(item);
  }

  private addAll(source: YamlValue): void {
    const { environment } = this;
    const prefix = textAt(source, 'prefix');
    const secret = textAt(source, 'secretRef', 'name');
    const [kind, name] =
      secret === '' ? ['ConfigMap', textAt(source, 'configMapRef', 'name')] : ['Secret', secret];
    const manifest = this.find(kind, name);
    for (const part of ['data', 'stringData']) {
      for (const [key, value] of entriesAt(manifest?.fields, part))
        environment.set(prefix + key, secret === '' && value.kind === 'scalar' ? value.text : undefined);
    }
    if (secret !== '') environment.advice.push({ about: `Secret ${secret}`, text: NOT_READ });
    if (manifest !== undefined) return;
    environment.hideUnset();
    const text =
      'the given files do not contain its manifest, so its variables are unknown; also pass the ' +
      'manifest, or check docs/migrate.md for defaults that differ.';
    environment.decide.push({ about: `${kind} ${name}`, text });
  }

  private add(item: YamlValue): void {
    const { environment } = this;
    const name = textAt(item, 'name');
    const map = textAt(item, 'valueFrom', 'configMapKeyRef', 'name');
    const key = textAt(item, 'valueFrom', 'configMapKeyRef', 'key');
    const inMap = map === '' ? undefined : valueAt(this.find('ConfigMap', map)?.fields, 'data', key);
    const written = textAt(item, 'value');
    // The value of a Secret, of a field of the pod, or with a reference such as `$(NAME)`, is not read.
    const isHidden = map === '' && (valueAt(item, 'valueFrom') !== undefined || written.includes('$('));
    if (isHidden) {
      environment.set(name, undefined);
      environment.advice.push({ about: name, text: NOT_READ });
    } else if (map === '') {
      environment.set(name, written);
    } else if (inMap?.kind === 'scalar') {
      environment.set(name, inMap.text);
    } else {
      environment.set(name, undefined);
      const text = `the value comes from the ConfigMap ${map}, ${MISSING}`;
      environment.decide.push({ about: name, text });
    }
  }

  private find(kind: string, name: string): Manifest | undefined {
    return this.manifests.find((manifest) => manifest.kind === kind && manifest.name === name);
  }
}

function mountedConfigMaps(pod: YamlValue | undefined): readonly string[] {
  return itemsAt(pod, 'volumes')
    .flatMap((volume) => [volume, ...itemsAt(volume, 'projected', 'sources')])
    .map((source) => textAt(source, 'configMap', 'name'))
    .filter((name) => name !== '');
}
