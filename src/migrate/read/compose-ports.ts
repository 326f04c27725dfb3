import { itemsAt, textAt } from '../../config/manifests/manifest.js';
import type { YamlValue } from '../../config/yaml/yaml-document.js';
import type { Layer } from './compose-project.js';
import { interpolate } from './interpolate.js';
import type { PublishedPort } from './workload.js';

type Variables = Readonly<Record<string, string>>;

/**
 * Returns the TCP ports that a compose service publishes with `ports` (github.com/compose-spec/compose-spec,
 * 05-services, "ports"). A range returns all its ports, and an invalid item is ignored. Returns undefined with
 * `network_mode: host`, because all ports of the container are ports of the host.
 */
export function portsOf(layers: readonly Layer[], dotEnv: Variables): readonly PublishedPort[] | undefined {
  const mode = layers.map(({ service }) => textAt(service, 'network_mode')).findLast((text) => text !== '');
  if (mode === 'host') return undefined;
  return layers.flatMap(({ service }) =>
    itemsAt(service, 'ports').flatMap((item) => readPorts(item, (text) => interpolate(text, dotEnv).text)),
  );
}

function readPorts(item: YamlValue, expand: (text: string) => string | undefined): readonly PublishedPort[] {
  if (item.kind === 'map') {
    if (!['', 'tcp'].includes(textAt(item, 'protocol'))) return [];
    const [target, published, host] = ['target', 'published', 'host_ip'].map((key) => textAt(item, key));
    return pairs(expand(host ?? ''), expand(published ?? ''), expand(target ?? ''));
  }
  const text = item.kind === 'scalar' ? expand(item.text) : undefined;
  // An IPv6 address contains colons and is in brackets.
  const [, host = '', published = '', target] =
    /^(?:(?:(\[[^\]]+\]|[^:]+):)?([\d-]*):)?([\d-]+)(?:\/tcp)?$/.exec(text ?? '') ?? [];
  return pairs(host.replace(/^\[|\]$/g, ''), published, target);
}

/**
 * Pairs the ports of two ranges of equal length, such as `18080-18081` and `8080-8081`. If `published` is empty, docker
 * chooses the port.
 */
function pairs(
  host: string | undefined,
  published: string | undefined,
  target: string | undefined,
): readonly PublishedPort[] {
  const inside = rangeOf(target);
  const outside = published === '' ? [] : rangeOf(published);
  if (published !== '' && inside.length !== outside.length) return [];
  return inside.map((port, i) => ({ host: host ?? '', published: outside[i], target: port }));
}

/** Returns the ports of `8080` or `8080-8083`, or none if the text is invalid. */
function rangeOf(text: string | undefined): readonly number[] {
  const [, first = '', last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text ?? '') ?? [];
  const length = Math.min(Number(last) - Number(first) + 1, 65_536);
  return first === '' || length < 1 ? [] : Array.from({ length }, (_, i) => Number(first) + i);
}
