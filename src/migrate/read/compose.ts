import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { readConfigFile } from '../../config/files/policy-paths.js';
import { entriesAt, itemsAt, textAt, valueAt } from '../../config/manifests/manifest.js';
import { isNull, type YamlMap, type YamlValue } from '../../config/yaml/yaml-document.js';
import { emptyVariables, readEnvFile } from '../env-file.js';
import type { Finding } from '../findings.js';
import { mountsOf } from './compose-mounts.js';
import { portsOf } from './compose-ports.js';
import {
  type ComposeProject,
  type ComposeService,
  composeProject,
  type Layer,
  servicesIn,
} from './compose-project.js';
import { GatheredVariables } from './gathered-variables.js';
import type { Input } from './input.js';
import { interpolate, unsetVariables } from './interpolate.js';
import { memoryFindings } from './memory-limit.js';
import { healthFindings } from './probe-programs.js';
import type { Workload } from './workload.js';

type Variables = Readonly<Record<string, string>>;

/**
 * Returns the services that this compose file is the first to define (github.com/compose-spec/compose-spec,
 * 05-services), merged with the other files of the project. `inputs` are all files. Returns an error message if another
 * file of the project cannot be read.
 */
export function composeServices(input: Input, inputs: readonly Input[]): readonly Workload[] | string {
  const project = composeProject(inputs);
  if (typeof project === 'string') return project;
  const folder = dirname(project.files[0]?.file ?? input.file);
  const dotEnv = readDotEnv(folder);
  if (typeof dotEnv === 'string') return dotEnv;
  return servicesIn(project, input, inputs).map((service) => readService(input, project, service, dotEnv));
}

function readService(
  input: Input,
  { files, override }: ComposeProject,
  { name, layers, own, unresolved }: ComposeService,
  dotEnv: Variables,
): Workload {
  /** Returns the value at a path in the last layer that has one. */
  const last = (...path: readonly string[]): string =>
    layers.map(({ service }) => textAt(service, ...path)).findLast((text) => text !== '') ?? '';
  const container = last('container_name');
  const image = interpolate(last('image'), dotEnv);
  const limit = last('deploy', 'resources', 'limits', 'memory') || last('mem_limit');
  const about = `${input.file}: ${name}`;
  const environment = readEnvironment(layers, about, dotEnv);
  if (unresolved.length > 0) environment.hideUnset();
  for (const clause of unresolved) environment.decide.push({ about, text: `${clause}. ${RESOLVE_ADVICE}` });
  const redis = files.flatMap(({ documents }) => documents.flatMap(evictionFindings));
  return {
    input,
    title: `service ${name}`,
    names: container === '' ? [name] : [name, container],
    image: image.text ?? last('image'),
    command: ['command', 'entrypoint'].flatMap(
      (key) => layers.map(({ service }) => words(service, key)).findLast(([word]) => word !== '') ?? [],
    ),
    environment,
    mounts: mountsOf(layers, files, dotEnv),
    same:
      override === undefined
        ? []
        : [
            {
              about: override.file,
              text:
                'docker compose reads both compose files by default. Settings in this file override ' +
                'settings in the other file.',
            },
          ],
    decide: [
      ...memoryFindings(`service ${name}`, limit, 'compose', environment),
      ...healthFindings(
        `${about}: healthcheck`,
        layers.flatMap(({ service }) => words(service, 'healthcheck', 'test')),
      ),
      ...redis,
    ],
    edit: {
      root: own.root,
      image: ['services', name, 'image'],
      variables: ['services', name, 'environment'],
      form: 'map-or-lines',
      drop: ['build'],
    },
    deployed: {
      by: 'compose',
      service: name,
      files: files.map(({ file }) => file),
      isBuilt: layers.some(({ service }) => service.fields.has('build')),
      pullPolicy: last('pull_policy'),
      ports: portsOf(layers, dotEnv),
      isInOneFile:
        files.length === 1 &&
        layers.every(({ file }) => file === input.file) &&
        !own.root.fields.has('include'),
    },
  };
}

const RESOLVE_ADVICE =
  "Therefore, the service's variables are unknown, and weir migrate does not add any variables. Run " +
  '`docker compose config > resolved.yaml`, and pass only that file. The file contains the values of ' +
  'all variables, including secrets.';

function words(service: YamlMap, ...path: readonly string[]): readonly string[] {
  const list = itemsAt(service, ...path).flatMap((item) => (item.kind === 'scalar' ? [item.text] : []));
  return list.length > 0 ? list : [textAt(service, ...path)];
}

/** Reports a Redis in the file that may evict keys that still count. */
function evictionFindings(document: YamlValue): readonly Finding[] {
  return entriesAt(document, 'services').flatMap(([name, service]) => {
    const command = service.kind === 'map' ? words(service, 'command').join(' ') : '';
    const policy = /--maxmemory-policy[\s=]+(?!noeviction\b)([\w-]+)/.exec(command)?.[1];
    if (policy === undefined) return [];
    const text =
      `with maxmemory-policy ${policy}, Redis may evict counters. The affected callers then get their ` +
      'full limits again. Set maxmemory-policy to noeviction.';
    return [{ about: `service ${name}`, text }];
  });
}

/**
 * Reads `.env`, which sets values of `${NAME}` for compose if the shell does not. Returns an error message if the file
 * cannot be read.
 */
function readDotEnv(folder: string): Variables | string {
  const file = join(folder, '.env');
  if (!existsSync(file)) return emptyVariables();
  try {
    return readEnvFile(readConfigFile(file).toString()).variables;
  } catch (error) {
    return (error as Error).message;
  }
}

function readEnvironment(layers: readonly Layer[], about: string, dotEnv: Variables): GatheredVariables {
  const gathered = new GatheredVariables();
  for (const file of layers.flatMap((layer) => envFiles(layer, dotEnv))) {
    try {
      gathered.addEnvFile(file.path, readConfigFile(file.path).toString());
    } catch (error) {
      if (!file.required) continue;
      gathered.hideAll();
      const text =
        `this file in "env_file" cannot be read (${(error as Error).message}), so its variables are ` +
        'unknown, and weir migrate does not add any variables. Copy the deployed file to this path, and ' +
        'run weir migrate again.';
      gathered.decide.push({ about: file.path, text });
    }
  }
  for (const [name, written] of layers.flatMap(({ service }) => ownVariables(service))) {
    const value = written === undefined ? dotEnv[name] : interpolate(written, dotEnv).text;
    gathered.set(name, value);
    if (value !== undefined) continue;
    const from =
      written === undefined
        ? 'takes its value from the shell variable with the same name'
        : `takes its value from ${unsetVariables(written, dotEnv).join(' and ')}`;
    const remedy =
      'which no file sets, so the value is unknown; add the value to .env next to the compose file, ' +
      'because docker compose also reads this file';
    gathered.decide.push({ about, text: `${name} ${from}, ${remedy}.` });
  }
  return gathered;
}

/** Reads `environment`, a list or a mapping. An undefined value means the value in the shell. */
function ownVariables(service: YamlMap): readonly (readonly [string, string | undefined])[] {
  const lines = itemsAt(service, 'environment').flatMap((item) =>
    item.kind === 'scalar' ? [item.text] : [],
  );
  return [
    ...lines.map((line) => {
      const equals = line.indexOf('=');
      return equals < 0
        ? ([line, undefined] as const)
        : ([line.slice(0, equals), line.slice(equals + 1)] as const);
    }),
    ...entriesAt(service, 'environment').flatMap(([name, value]) =>
      value.kind === 'scalar' ? [[name, isNull(value) ? undefined : value.text] as const] : [],
    ),
  ];
}

function envFiles(
  { service, folder }: Layer,
  dotEnv: Variables,
): readonly { path: string; required: boolean }[] {
  const written = valueAt(service, 'env_file');
  const all = written?.kind === 'list' ? written.items : written === undefined ? [] : [written];
  return all.flatMap((one) => {
    const text = one.kind === 'scalar' ? one.text : textAt(one, 'path');
    const path = interpolate(text, dotEnv).text ?? text;
    if (path === '') return [];
    return [
      { path: isAbsolute(path) ? path : join(folder, path), required: textAt(one, 'required') !== 'false' },
    ];
  });
}
