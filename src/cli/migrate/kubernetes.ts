import {
  entriesAt,
  itemsAt,
  type Manifest,
  manifestsOf,
  textAt,
  valueAt,
} from '../../config/manifests/config-maps.js';
import type { YamlMap, YamlValue } from '../../config/yaml/yaml-document.js';
import type { Input } from './input.js';
import { Environment, healthFindings, type Workload } from './workload.js';

/** Kinds with long-running pods; all but Pod contain a pod template. */
const KINDS = ['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'Pod'];
const PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe'];

const NOT_READ = 'weir gets this value as before, but weir migrate does not read it.';
const MISSING = "which is not in the given files or lacks this key; also pass the ConfigMap's manifest.";

/** Returns the containers in the manifests, which may refer to ConfigMaps in any of the inputs. */
export function containers(inputs: readonly Input[]): readonly Workload[] {
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

/** Returns the names of the ConfigMaps that a pod mounts. */
function mountedConfigMaps(pod: YamlValue | undefined): readonly string[] {
  return itemsAt(pod, 'volumes')
    .flatMap((volume) => [volume, ...itemsAt(volume, 'projected', 'sources')])
    .map((source) => textAt(source, 'configMap', 'name'))
    .filter((name) => name !== '');
}
