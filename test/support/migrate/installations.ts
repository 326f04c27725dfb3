import { type Installation, readInstallation } from '../../../src/migrate/read/installation.js';
import { TempDir } from '../process/temp-dir.js';

/** Files of envoyproxy/ratelimit installations, each in its own folder below one root. */
export class Installations {
  private readonly folder = new TempDir();
  private count = 0;

  remove(): void {
    this.folder.remove();
  }

  /** Writes files and reads those whose names do not begin with a dot or "unnamed". */
  read(files: Readonly<Record<string, string>>, service?: string): Installation | string {
    const place = this.folderOf(files);
    const named = Object.keys(files).filter((name) => !/(?:^|\/)(?:\.|unnamed)[^/]*$/.test(name));
    const result = readInstallation(
      named.map((name) => `${place}/${name}`),
      [],
      service,
    );
    return typeof result === 'string' ? result.replaceAll(`${place}/`, '') : result;
  }

  /** Writes files into a new folder and returns its path. */
  folderOf(files: Readonly<Record<string, string>>): string {
    const place = `case-${this.count++}`;
    for (const [name, text] of Object.entries(files)) this.folder.write(`${place}/${name}`, text);
    return `${this.folder.path}/${place}`;
  }

  /** Returns the installation; throws if the files do not describe one. */
  good(files: Readonly<Record<string, string>>, service?: string): Installation {
    const found = this.read(files, service);
    if (typeof found === 'string') throw new Error(found);
    return found;
  }
}

/** Returns a compose file with one service, `ratelimit`. */
export const composeFile = (service: string): string =>
  `services:\n  ratelimit:\n${service.replace(/^/gm, '    ')}\n`;

/** Returns a Deployment whose second container runs the service. */
export const deployment = (container: string, volumes = '[]'): string => `apiVersion: apps/v1
kind: Deployment
metadata: { name: limits, namespace: edge }
spec:
  template:
    spec:
      volumes: ${volumes}
      containers:
        - name: statsd
          image: prom/statsd-exporter
        - name: main
          image: envoyproxy/ratelimit:4d2efd61
${container.replace(/^/gm, '          ')}
`;

/** Returns a ConfigMap as a further document of a file. */
export const configMap = (name: string, data: string): string =>
  `---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name} }\ndata:\n${data.replace(/^/gm, '  ')}\n`;

/** A policy, and the same policy as a key of a ConfigMap. */
export const POLICY =
  'domain: shop\ndescriptors: [{ key: user, rate_limit: { unit: second, requests_per_unit: 1 } }]';
export const policyAs = (key: string): string => `${key}: |\n${POLICY.replace(/^/gm, '  ')}`;
