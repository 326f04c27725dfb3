import { isAbsolute, join } from 'node:path';
import { itemsAt, textAt, valueAt } from '../../../config/manifests/manifest.js';
import type { YamlValue } from '../../../config/yaml/yaml-document.js';
import type { Layer } from './compose-project.js';
import type { Input } from './input.js';
import { interpolate } from './interpolate.js';
import type { Mount } from './workload.js';

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
  return target === '' ? [] : [mountOf(source, target, folder, `the volume ${source}`)];
}

/** At the colons outside of `${NAME:-default}`, which is left where a name has no value. */
function splitVolume(text: string): readonly string[] {
  return text.match(/(?:\$\{[^}]*\}|[^:])+/g) ?? [];
}

/** An item of a service's `configs`: the file that the top of a file says it is. */
function readConfig(config: YamlValue, folder: string, files: readonly Input[], beside: Variables): Mount {
  const name = config.kind === 'scalar' ? config.text : textAt(config, 'source');
  const target = textAt(config, 'target') || `/${name}`;
  const file = files
    .flatMap(({ documents }) =>
      documents.map((document) => textAt(valueAt(document, 'configs', name), 'file')),
    )
    .findLast((one) => one !== '');
  const what = `the config ${name}, which is not a file`;
  if (file === undefined) return { target, source: { kind: 'elsewhere', what } };
  const path = interpolate(file, beside).text ?? file;
  return mountOf(isAbsolute(path) || path.includes('$') ? path : `./${path}`, target, folder, what);
}

function mountOf(source: string, target: string, folder: string, what: string): Mount {
  if (source.startsWith('~')) return { target, source: { kind: 'elsewhere', what: source } };
  if (!/^[./]/.test(source)) return { target, source: { kind: 'elsewhere', what } };
  return { target, source: { kind: 'path', path: isAbsolute(source) ? source : join(folder, source) } };
}
