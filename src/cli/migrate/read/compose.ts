import { existsSync, readFileSync } from 'node:fs';
import { dirname, isAbsolute, join } from 'node:path';
import { entriesAt, itemsAt, textAt, valueAt } from '../../../config/manifests/manifest.js';
import { isNull, type YamlMap, type YamlValue } from '../../../config/yaml/yaml-document.js';
import { readEnvFile } from '../env-file.js';
import type { Finding } from '../findings.js';
import type { Input } from './input.js';
import { memoryFindings } from './memory-limit.js';
import type { Environment, Mount, Workload } from './workload.js';

type Variables = Readonly<Record<string, string>>;

/** The services of a compose file (github.com/compose-spec/compose-spec, 05-services). */
export function composeServices(input: Input): readonly Workload[] {
  const folder = dirname(input.file);
  const beside = variablesBeside(folder);
  return input.documents.flatMap((document) =>
    entriesAt(document, 'services').flatMap(([name, service]) =>
      service.kind === 'map' && document.kind === 'map'
        ? [readService(input, document, name, service, folder, beside)]
        : [],
    ),
  );
}

function readService(
  input: Input,
  root: YamlMap,
  name: string,
  service: YamlMap,
  folder: string,
  beside: Variables,
): Workload {
  const container = textAt(service, 'container_name');
  const image = interpolate(textAt(service, 'image'), beside);
  const limit = textAt(service, 'deploy', 'resources', 'limits', 'memory') || textAt(service, 'mem_limit');
  return {
    input,
    title: `service ${name}`,
    names: container === '' ? [name] : [name, container],
    image: image.text ?? textAt(service, 'image'),
    command: ['command', 'entrypoint'].flatMap((key) => words(service, key)),
    environment: readEnvironment(service, `${input.file}: ${name}`, folder, beside),
    mounts: itemsAt(service, 'volumes').flatMap((volume) => readVolume(volume, folder, beside)),
    same: [],
    decide: [...memoryFindings(`service ${name}`, limit), ...notFollowed(service, input.file, name)],
    edit: {
      root,
      image: ['services', name, 'image'],
      variables: ['services', name, 'environment'],
      form: 'map-or-lines',
      drop: ['build'],
    },
    deployed: { by: 'compose', service: name },
  };
}

function words(service: YamlMap, key: string): readonly string[] {
  const list = itemsAt(service, key).flatMap((item) => (item.kind === 'scalar' ? [item.text] : []));
  return list.length > 0 ? list : [textAt(service, key)];
}

/** What compose puts together from other files is not put together here. */
function notFollowed(service: YamlMap, file: string, name: string): readonly Finding[] {
  if (!service.fields.has('extends')) return [];
  const text =
    '"extends" takes a part of the service from elsewhere, which is not looked at: name that file, too.';
  return [{ about: `${file}: ${name}`, text }];
}

/** What compose takes values of `${NAME}` from, where the shell has none. */
function variablesBeside(folder: string): Variables {
  const file = join(folder, '.env');
  return existsSync(file) ? readEnvFile(readFileSync(file, 'utf8')).variables : {};
}

function readEnvironment(service: YamlMap, about: string, folder: string, beside: Variables): Environment {
  const variables: Record<string, string> = {};
  const unknown = new Set<string>();
  const decide: Finding[] = [];
  for (const file of envFiles(service, folder)) {
    try {
      const read = readEnvFile(readFileSync(file.path, 'utf8'));
      Object.assign(variables, read.variables);
      for (const name of read.unknown) unknown.add(name);
      for (const { line, message } of read.problems)
        decide.push({ about: `${file.path}:${line}`, text: `${message}.` });
    } catch (error) {
      if (!file.required) continue;
      const text = `the file of "env_file" cannot be read: ${(error as Error).message}.`;
      decide.push({ about: file.path, text });
    }
  }
  for (const [name, written] of ownVariables(service)) {
    const value = written === undefined ? beside[name] : interpolate(written, beside).text;
    delete variables[name];
    unknown.delete(name);
    if (value !== undefined) {
      variables[name] = value;
      continue;
    }
    unknown.add(name);
    const from = written === undefined ? 'has no value here' : 'takes its value from another variable';
    const remedy = 'write the value into .env beside the compose file, as compose reads it there, too';
    decide.push({ about, text: `${name} ${from}; ${remedy}.` });
  }
  return { variables, unknown, same: [], decide };
}

/** `environment`, as lines or as a mapping; undefined: what the shell has. */
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

function envFiles(service: YamlMap, folder: string): readonly { path: string; required: boolean }[] {
  const written = valueAt(service, 'env_file');
  const all = written?.kind === 'list' ? written.items : written === undefined ? [] : [written];
  return all.flatMap((one) => {
    const path = one.kind === 'scalar' ? one.text : textAt(one, 'path');
    if (path === '') return [];
    return [
      { path: isAbsolute(path) ? path : join(folder, path), required: textAt(one, 'required') !== 'false' },
    ];
  });
}

/**
 * `${NAME}`, `${NAME:-default}`, `${NAME-default}`, `$NAME` and `$$`; without a text where a name has no value here.
 */
export function interpolate(text: string, variables: Variables): { readonly text: string | undefined } {
  let known = true;
  const replaced = text.replaceAll(
    /\$(?:(\$)|\{(\w+)(?:(:?[-?+])([^}]*))?\}|(\w+))/g,
    (
      _all,
      dollar: string | undefined,
      braced: string | undefined,
      operator: string | undefined,
      word: string | undefined,
      bare: string | undefined,
    ) => {
      if (dollar !== undefined) return '$';
      const value = variables[braced ?? bare ?? ''];
      const isSet = value !== undefined && !(operator?.startsWith(':') === true && value === '');
      if (operator?.endsWith('+') === true) return isSet ? (word ?? '') : '';
      if (isSet) return value;
      if (operator?.endsWith('-') === true) return word ?? '';
      known = false;
      return '';
    },
  );
  return { text: known ? replaced : undefined };
}

/** `./config:/data/ratelimit/config:ro`, or the same as a mapping. */
function readVolume(volume: YamlValue, folder: string, beside: Variables): readonly Mount[] {
  const [source = '', target = ''] =
    volume.kind === 'scalar'
      ? (interpolate(volume.text, beside).text ?? '').split(':')
      : [textAt(volume, 'source'), textAt(volume, 'target')];
  if (target === '') return [];
  if (!/^[./~]/.test(source))
    return [{ target, source: { kind: 'elsewhere', what: `the volume ${source}` } }];
  if (source.startsWith('~')) return [{ target, source: { kind: 'elsewhere', what: source } }];
  return [{ target, source: { kind: 'path', path: isAbsolute(source) ? source : join(folder, source) } }];
}
