import type { YamlMap } from '../yaml/yaml-document.js';

const MOVE_ADVICE = 'move this file out of the policy directory (a policy file begins with "domain: <name>")';

/**
 * Returns the apparent type of a document that is not a policy, and what to do with it; undefined if the type is
 * unknown. The text repeats only the name of a type from the document.
 */
export function foreignDocument({ fields }: YamlMap): string | undefined {
  if (fields.has('domain')) return undefined;
  const kind = fields.get('kind')?.value;
  if (fields.has('apiVersion') && kind?.kind === 'scalar' && /^[A-Z][A-Za-z]{1,60}$/.test(kind.text)) {
    const remedy =
      kind.text === 'ConfigMap'
        ? 'mount the ConfigMap as a directory and specify this directory, or save each value under "data" ' +
          'as a separate policy file'
        : MOVE_ADVICE;
    return `this is a Kubernetes ${kind.text}, not a policy; ${remedy}`;
  }
  const other = fields.has('static_resources')
    ? "Envoy's configuration"
    : fields.get('services')?.value.kind === 'map'
      ? 'a Docker Compose file'
      : undefined;
  if (other === undefined) return undefined;
  return `this is ${other}, not a policy; ${MOVE_ADVICE}`;
}
