import { itemsAt, type Manifest, manifestsOf, textAt, valueAt } from '../../config/manifests/manifest.js';
import type { YamlMap, YamlValue } from '../../config/yaml/yaml-document.js';
import { containerVariables } from './container-variables.js';
import type { Input } from './input.js';
import { memoryFindings } from './memory-limit.js';
import { healthFindings } from './probe-programs.js';
import type { Mount, MountSource, Workload } from './workload.js';

/** Kinds with long-running pods, and the path of the pod's spec in each. */
const POD_PATHS: ReadonlyMap<string, readonly string[]> = new Map([
  ['Deployment', ['spec', 'template', 'spec']],
  ['StatefulSet', ['spec', 'template', 'spec']],
  ['DaemonSet', ['spec', 'template', 'spec']],
  ['ReplicaSet', ['spec', 'template', 'spec']],
  ['Pod', ['spec']],
]);

/**
 * Returns the containers in an input's manifests. `all` contains the manifests of all inputs, which the containers may
 * refer to.
 */
export function containers(input: Input, all: readonly Manifest[]): readonly Workload[] {
  return manifestsOf(input.documents).flatMap((manifest) => {
    const path = POD_PATHS.get(manifest.kind);
    const pod = path === undefined ? undefined : valueAt(manifest.fields, ...path);
    if (path === undefined || pod?.kind !== 'map') return [];
    return itemsAt(pod, 'containers').flatMap((container, i) =>
      container.kind === 'map'
        ? [readContainer(input, manifest, [...path, 'containers', i], container, pod, all)]
        : [],
    );
  });
}

function readContainer(
  input: Input,
  manifest: Manifest,
  path: readonly (string | number)[],
  container: YamlMap,
  pod: YamlMap,
  all: readonly Manifest[],
): Workload {
  const name = textAt(container, 'name');
  const owner = `${manifest.kind.toLowerCase()}/${manifest.name}`;
  const namespace = textAt(manifest.fields, 'metadata', 'namespace');
  const environment = containerVariables(container, all);
  return {
    input,
    title: `container ${name} of ${manifest.kind} ${manifest.name}`,
    names: [`${owner}/${name}`, owner, `${manifest.name}/${name}`, manifest.name, name],
    image: textAt(container, 'image'),
    command: ['command', 'args'].flatMap((key) =>
      itemsAt(container, key).flatMap((item) => (item.kind === 'scalar' ? [item.text] : [])),
    ),
    environment,
    mounts: itemsAt(container, 'volumeMounts').flatMap((mount) => readMount(mount, pod)),
    same: [],
    decide: [
      ...memoryFindings(
        `container ${name}`,
        textAt(container, 'resources', 'limits', 'memory'),
        'kubernetes',
        environment,
      ),
      ...PROBES.flatMap((probe) =>
        healthFindings(`container ${name}: ${probe}`, commandOf(valueAt(container, probe))),
      ),
    ],
    edit: {
      root: manifest.fields,
      image: [...path, 'image'],
      variables: [...path, 'env'],
      form: 'names-and-values',
      drop: [],
    },
    deployed: {
      by: 'kubectl',
      owner: namespace === '' ? owner : `${owner} -n ${namespace}`,
      container: name,
      isPatchable: ['Deployment', 'StatefulSet', 'DaemonSet'].includes(manifest.kind),
      isSnapshot: ['resourceVersion', 'uid'].some((key) => textAt(manifest.fields, 'metadata', key) !== ''),
      probes: probesOf(container),
    },
  };
}

const PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe'];

/** Returns the command of an exec probe, or an empty list for another probe. */
function commandOf(probe: YamlValue | undefined): readonly string[] {
  return itemsAt(probe, 'exec', 'command').flatMap((word) => (word.kind === 'scalar' ? [word.text] : []));
}

function probesOf(container: YamlMap): 'none' | 'requests' | 'others' {
  const probes = PROBES.flatMap((name) => valueAt(container, name) ?? []);
  if (probes.length === 0) return 'none';
  return probes.every((probe) => textAt(probe, 'httpGet', 'path') === '/healthcheck') ? 'requests' : 'others';
}

function readMount(mount: YamlValue, pod: YamlMap): readonly Mount[] {
  const name = textAt(mount, 'name');
  const target = textAt(mount, 'mountPath');
  const volume = itemsAt(pod, 'volumes').find((one) => textAt(one, 'name') === name);
  const subPath = textAt(mount, 'subPath');
  return sourcesOf(volume, name).map((source) => {
    if (subPath === '' || source.kind !== 'config-map') return { target, source };
    // With a `subPath`, the mount is a single file at `target`.
    const file = [...(source.files ?? new Map([[subPath, subPath]]))].find(([, path]) => path === subPath);
    return { target, source: { ...source, files: new Map(file === undefined ? [] : [[file[0], '']]) } };
  });
}

function sourcesOf(volume: YamlValue | undefined, name: string): readonly MountSource[] {
  const projected = itemsAt(volume, 'projected', 'sources').flatMap((source) =>
    configMap(valueAt(source, 'configMap'), 'name'),
  );
  const own = configMap(valueAt(volume, 'configMap'), 'name');
  const sources = [...own, ...projected];
  return sources.length > 0 ? sources : [{ kind: 'elsewhere', what: `the volume ${name}` }];
}

function configMap(value: YamlValue | undefined, key: string): readonly MountSource[] {
  const name = textAt(value, key);
  if (name === '') return [];
  const items = itemsAt(value, 'items').map((item) => [textAt(item, 'key'), textAt(item, 'path')] as const);
  return [{ kind: 'config-map', name, ...(items.length > 0 && { files: new Map(items) }) }];
}
