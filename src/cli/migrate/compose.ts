import { existsSync } from 'node:fs';
import { basename, dirname, isAbsolute, join } from 'node:path';
import { readConfigFile } from '../../config/files/policy-paths.js';
import { entriesAt, itemsAt, textAt, valueAt } from '../../config/manifests/config-maps.js';
import { isNull, type YamlMap } from '../../config/yaml/yaml-document.js';
import { emptyVariables, readEnvFile } from './env-file.js';
import { type Input, InputError } from './input.js';
import { Environment, healthFindings, type Workload } from './workload.js';

type Variables = Readonly<Record<string, string>>;

/** Names of files that compose looks for without `-f`, in order of preference. */
const DEFAULT_NAMES = ['compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml'];
const OVERRIDES = DEFAULT_NAMES.map((name) => name.replace('.y', '.override.y'));

const RESOLVE_ADVICE =
  'run `docker compose config > resolved.yaml` with your usual options, and pass only that file, which ' +
  'contains the values of all variables, including secrets';

/** Returns the name of the compose file that compose would use in a folder; undefined if no such file exists. */
export function composeFileIn(folder: string): string | undefined {
  return DEFAULT_NAMES.find((name) => existsSync(join(folder, name)));
}

/** Returns the services of the compose file among the inputs (github.com/compose-spec/compose-spec, 05-services). */
export function composeServices(inputs: readonly Input[]): readonly Workload[] {
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
