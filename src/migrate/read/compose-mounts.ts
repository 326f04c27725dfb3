import { isAbsolute, join } from 'node:path';
import { itemsAt, textAt, valueAt } from '../../config/manifests/manifest.js';
import { openPart } from '../../config/read/policy-source.js';
import { ProblemList } from '../../config/yaml/config-problem.js';
import { joinPath, type YamlScalar, type YamlValue } from '../../config/yaml/yaml-document.js';
import { scalarPart } from '../../config/yaml/yaml-part.js';
import type { Layer } from './compose-project.js';
import type { Input } from './input.js';
import { interpolate, namesWithout } from './interpolate.js';
import type { Mount, MountSource } from './workload.js';

type Variables = Readonly<Record<string, string>>;

/** What lies where in a service of compose: `volumes` and `configs`. Of two at one path the later one counts. */
export function mountsOf(
  layers: readonly Layer[],
  files: readonly Input[],
  beside: Variables,
): readonly Mount[] {
  const mounts = layers.flatMap(({ service, folder }) => [
    ...itemsAt(service, 'volumes').flatMap((volume) => readVolume(volume, folder, beside)),
    ...itemsAt(service, 'configs').map((config) => readConfig(config, folder, files, beside)),
  ]);
  return [...new Map(mounts.map((mount) => [mount.target, mount])).values()];
}

/** `./config:/data/ratelimit/config:ro`, or the same as a mapping. */
function readVolume(volume: YamlValue, folder: string, beside: Variables): readonly Mount[] {
  const expand = (text: string): string => interpolate(text, beside).text ?? text;
  const [source = '', target = ''] =
    volume.kind === 'scalar'
      ? splitVolume(expand(volume.text))
      : [expand(textAt(volume, 'source')), expand(textAt(volume, 'target'))];
  // Without a source it is an empty volume, or a tmpfs.
  if (source === '' || target === '') return [];
  const isPath = textAt(volume, 'type') === 'bind' && /^[^/~$]/.test(source);
  return [mountOf(isPath ? `./${source}` : source, target, folder, `the volume ${source}`)];
}

/** At the colons outside of `${NAME:-default}`, which is left where a name has no value. */
function splitVolume(text: string): readonly string[] {
  return text.match(/(?:\$\{[^}]*\}|[^:])+/g) ?? [];
}

/** An item of a service's `configs`, by name or as a mapping: what the top of the last file that has it says it is. */
function readConfig(config: YamlValue, folder: string, files: readonly Input[], beside: Variables): Mount {
  const name = config.kind === 'scalar' ? config.text : textAt(config, 'source');
  const target = textAt(config, 'target') || `/${name}`;
  const what = `the config ${name}, which is neither a file nor a text in the compose file`;
  const sources = files.flatMap((input) =>
    input.documents.flatMap((document): readonly MountSource[] => {
      const file = textAt(document, 'configs', name, 'file');
      if (file !== '') {
        const path = interpolate(file, beside).text ?? file;
        const isPath = isAbsolute(path) || path.includes('$');
        return [mountOf(isPath ? path : `./${path}`, target, folder, what).source];
      }
      const content = valueAt(document, 'configs', name, 'content');
      return content?.kind === 'scalar' ? [textSource(name, content, input, beside)] : [];
    }),
  );
  return { target, source: sources.at(-1) ?? { kind: 'elsewhere', what } };
}

/** A config whose text stands in the compose file, where compose replaces `${NAME}` and `$$`. */
function textSource(name: string, content: YamlScalar, input: Input, beside: Variables): MountSource {
  const text = content.text.includes('$') ? interpolate(content.text, beside).text : content.text;
  if (text === undefined) {
    const names = namesWithout(content.text, beside).join(' and ');
    return {
      kind: 'elsewhere',
      what: `the config ${name}, whose text names ${names}, which has no value here`,
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
