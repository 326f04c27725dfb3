import { isAbsolute, join } from 'node:path';
import { itemsAt, textAt, valueAt } from '../../config/manifests/manifest.js';
import { openPart } from '../../config/read/policy-source.js';
import { ProblemList } from '../../config/yaml/config-problem.js';
import { joinPath, type YamlScalar, type YamlValue } from '../../config/yaml/yaml-document.js';
import { scalarPart } from '../../config/yaml/yaml-part.js';
import type { Layer } from './compose-project.js';
import type { Input } from './input.js';
import { interpolate, unsetVariables } from './interpolate.js';
import type { Mount, MountSource } from './workload.js';

type Variables = Readonly<Record<string, string>>;

/**
 * Returns the mounts of a compose service from `volumes` and `configs`. If two have the same target, the later one
 * applies.
 */
export function mountsOf(
  layers: readonly Layer[],
  files: readonly Input[],
  dotEnv: Variables,
): readonly Mount[] {
  const mounts = layers.flatMap(({ service, folder }) => [
    ...itemsAt(service, 'volumes').flatMap((volume) => readVolume(volume, folder, dotEnv)),
    ...itemsAt(service, 'configs').map((config) => readConfig(config, folder, files, dotEnv)),
  ]);
  return [...new Map(mounts.map((mount) => [mount.target, mount])).values()];
}

/** Reads a volume such as `./config:/data/ratelimit/config:ro`, or its long form as a mapping. */
function readVolume(volume: YamlValue, folder: string, dotEnv: Variables): readonly Mount[] {
  const expand = (text: string): string => interpolate(text, dotEnv).text ?? text;
  const [source = '', target = ''] =
    volume.kind === 'scalar'
      ? splitVolume(expand(volume.text))
      : [expand(textAt(volume, 'source')), expand(textAt(volume, 'target'))];
  // A volume without a source is anonymous, or a tmpfs.
  if (source === '' || target === '') return [];
  const isPath = textAt(volume, 'type') === 'bind' && /^[^/~$]/.test(source);
  return [mountOf(isPath ? `./${source}` : source, target, folder, `the volume ${source}`)];
}

/** Splits a volume at colons that are not part of `${NAME:-default}`, which remains if the name has no value. */
function splitVolume(text: string): readonly string[] {
  return text.match(/(?:\$\{[^}]*\}|[^:])+/g) ?? [];
}

/**
 * Reads an item of a service's `configs`, a name or a mapping. The last file with a top-level config of that name
 * defines its content.
 */
function readConfig(config: YamlValue, folder: string, files: readonly Input[], dotEnv: Variables): Mount {
  const name = config.kind === 'scalar' ? config.text : textAt(config, 'source');
  const target = textAt(config, 'target') || `/${name}`;
  const what = `the config ${name}, whose content is neither in a file nor in the compose file`;
  const sources = files.flatMap((input) =>
    input.documents.flatMap((document): readonly MountSource[] => {
      const file = textAt(document, 'configs', name, 'file');
      if (file !== '') {
        const path = interpolate(file, dotEnv).text ?? file;
        const isPath = isAbsolute(path) || path.includes('$');
        return [mountOf(isPath ? path : `./${path}`, target, folder, what).source];
      }
      const content = valueAt(document, 'configs', name, 'content');
      return content?.kind === 'scalar' ? [textSource(name, content, input, dotEnv)] : [];
    }),
  );
  return { target, source: sources.at(-1) ?? { kind: 'elsewhere', what } };
}

/** Returns a config whose content is in the compose file. Compose replaces `${NAME}` and `$$` in it. */
function textSource(name: string, content: YamlScalar, input: Input, dotEnv: Variables): MountSource {
  const text = content.text.includes('$') ? interpolate(content.text, dotEnv).text : content.text;
  if (text === undefined) {
    const names = unsetVariables(content.text, dotEnv).join(' and ');
    return {
      kind: 'elsewhere',
      what: `the config ${name}, whose content uses variables without a value (${names})`,
    };
  }
  const within = joinPath(joinPath('configs', name), 'content');
  const part = { ...scalarPart(content, input.lines), text };
  return {
    kind: 'text',
    name,
    part: { name: `${input.file} ${within}`, opened: openPart(part, new ProblemList(input.file, within)) },
    file: input.file,
  };
}

function mountOf(source: string, target: string, folder: string, what: string): Mount {
  if (source.startsWith('~')) return { target, source: { kind: 'elsewhere', what: source } };
  if (!/^[./]/.test(source)) return { target, source: { kind: 'elsewhere', what } };
  return { target, source: { kind: 'path', path: isAbsolute(source) ? source : join(folder, source) } };
}
