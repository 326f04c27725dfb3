import { entriesAt, itemsAt, type Manifest, textAt, valueAt } from '../../config/manifests/manifest.js';
import type { YamlValue } from '../../config/yaml/yaml-document.js';
import { GatheredVariables } from './gathered-variables.js';
import type { Environment } from './workload.js';

/**
 * Reads the variables of a container (`env`, `envFrom`). `manifests` contain the ConfigMaps. Values from Secrets stay
 * unknown, even if `manifests` contain the Secret.
 */
export function containerVariables(container: YamlValue, manifests: readonly Manifest[]): Environment {
  const reader = new ContainerReader(manifests);
  for (const source of itemsAt(container, 'envFrom')) reader.addAll(source);
  for (const item of itemsAt(container, 'env')) reader.add(item);
  return reader;
}

class ContainerReader extends GatheredVariables {
  private readonly manifests: readonly Manifest[];

  constructor(manifests: readonly Manifest[]) {
    super();
    this.manifests = manifests;
  }

  /** Adds the variables of an item of `envFrom`. */
  addAll(source: YamlValue): void {
    const prefix = textAt(source, 'prefix');
    const secret = textAt(source, 'secretRef', 'name');
    if (secret !== '') {
      const text =
        'the container still gets variables from this Secret. weir migrate does not read the values.';
      this.same.push({ about: `Secret ${secret}`, text });
      const manifest = this.find('Secret', secret);
      if (manifest === undefined) this.miss(`Secret ${secret}`);
      for (const key of keysOf(manifest)) this.set(prefix + key, undefined);
    }
    const map = textAt(source, 'configMapRef', 'name');
    if (map === '') return;
    const data = this.find('ConfigMap', map);
    if (data === undefined) {
      this.miss(`ConfigMap ${map}`);
      return;
    }
    for (const [key, value] of entriesAt(data.fields, 'data'))
      if (value.kind === 'scalar') this.set(prefix + key, value.text);
  }

  /** Adds the variable of an item of `env`. */
  add(item: YamlValue): void {
    const name = textAt(item, 'name');
    if (name === '') return;
    const from = valueAt(item, 'valueFrom');
    if (from === undefined) this.set(name, this.expand(textAt(item, 'value')));
    else this.addReference(name, from);
  }

  private addReference(name: string, from: YamlValue): void {
    const secret = textAt(from, 'secretKeyRef', 'name');
    const map = textAt(from, 'configMapKeyRef', 'name');
    this.set(name, undefined);
    if (secret !== '') {
      const key = textAt(from, 'secretKeyRef', 'key');
      const text =
        `the value comes from the Secret ${secret} (key ${key}) as before; weir migrate does not read the ` +
        'value.';
      this.same.push({ about: name, text });
    } else if (map !== '') {
      const value = textAt(
        this.find('ConfigMap', map)?.fields,
        'data',
        textAt(from, 'configMapKeyRef', 'key'),
      );
      if (value !== '') this.set(name, value);
      else this.decide.push({ about: name, text: `the value comes from the ConfigMap ${map}, ${MISSING}` });
    } else {
      this.same.push({ about: name, text: 'Kubernetes still sets this variable.' });
    }
  }

  /** Replaces `$(NAME)` with the value of a variable that was set earlier; undefined if that value is unknown. */
  private expand(text: string): string | undefined {
    let known = true;
    const expanded = text.replaceAll(/\$\$|\$\(([\w.-]+)\)/g, (all, name: string | undefined) => {
      if (name === undefined) return '$';
      if (this.unknown.has(name)) known = false;
      return this.variables[name] ?? all;
    });
    return known ? expanded : undefined;
  }

  /** Reports a source that is not among the files, and marks all unset variables as unknown. */
  private miss(about: string): void {
    this.hideUnset();
    const text =
      'the given files do not contain its manifest, so its variables are unknown; also pass the ' +
      'manifest, or check docs/migrate.md for defaults that differ.';
    this.decide.push({ about, text });
  }

  private find(kind: string, name: string): Manifest | undefined {
    return this.manifests.find((manifest) => manifest.kind === kind && manifest.name === name);
  }
}

function keysOf(secret: Manifest | undefined): readonly string[] {
  return [...entriesAt(secret?.fields, 'data'), ...entriesAt(secret?.fields, 'stringData')].map(
    ([key]) => key,
  );
}

const MISSING = "which is not in the given files or lacks this key; also pass the ConfigMap's manifest.";
