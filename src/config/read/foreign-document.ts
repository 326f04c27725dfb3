import type { YamlMap } from '../yaml/yaml-document.js';

/**
 * Returns what a document that is not a policy appears to be, and what to do with it; undefined if its kind is unknown.
 * The text repeats nothing from the document but the name of a kind.
 */
export function foreignDocument({ fields }: YamlMap): string | undefined {
  if (fields.has('domain')) return undefined;
  const kind = fields.get('kind')?.value;
  if (fields.has('apiVersion') && kind?.kind === 'scalar' && /^[A-Z][A-Za-z]{1,60}$/.test(kind.text)) {
    const remedy =
      kind.text === 'ConfigMap'
        ? 'mount it as a directory and specify that directory, or save each text under its "data" as a ' +
          'separate policy file'
        : 'a policy file begins with "domain: <name>"; move this one elsewhere';
    return `this is a Kubernetes ${kind.text}, not a policy; ${remedy}`;
  }
  const other = fields.has('static_resources')
    ? "Envoy's configuration"
    : fields.get('services')?.value.kind === 'map'
      ? 'a Docker Compose file'
      : undefined;
  if (other === undefined) return undefined;
  return `this is ${other}, not a policy; a policy file begins with "domain: <name>"; move this one elsewhere`;
}
