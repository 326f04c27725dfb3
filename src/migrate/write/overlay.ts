import type { Workload } from '../read/workload.js';
import type { Target } from './edit-workload.js';

/** A file that is applied on top of the installation's files, which stay unchanged. */
export interface Overlay {
  readonly name: string;
  readonly text: string;
}

/**
 * Returns the overlay that changes the image and variables of a workload; undefined if its type of deployment does not
 * support one.
 */
export function overlayOf({ deployed }: Workload, { image, variables }: Target): Overlay | undefined {
  const added = Object.entries(variables);
  switch (deployed.by) {
    case 'compose': {
      // Compose reads `$` in a value as the start of a variable.
      const quoted = (text: string): string => JSON.stringify(text.replaceAll('$', '$$$$'));
      const lines = [
        'services:',
        `  ${JSON.stringify(deployed.service)}:`,
        `    image: ${quoted(image)}`,
        // With a `build`, compose would build the old image under the new name.
        ...(deployed.isBuilt ? ['    build: !reset null'] : []),
        ...(added.length === 0 ? [] : ['    environment:']),
        ...added.map(([name, value]) => `      ${name}: ${quoted(value)}`),
      ];
      return { name: 'compose.weir.yaml', text: `${lines.join('\n')}\n` };
    }
    case 'kubectl': {
      if (deployed.container === '' || !deployed.isPatchable) return undefined;
      const lines = [
        'spec:',
        '  template:',
        '    spec:',
        '      containers:',
        `        - name: ${JSON.stringify(deployed.container)}`,
        `          image: ${JSON.stringify(image)}`,
        ...(added.length === 0 ? [] : ['          env:']),
        ...added.flatMap(([name, value]) => [
          `            - name: ${name}`,
          `              value: ${JSON.stringify(value)}`,
        ]),
      ];
      return { name: 'patch.yaml', text: `${lines.join('\n')}\n` };
    }
    default:
      return undefined;
  }
}

/**
 * Returns whether a workload must be changed by an overlay, because several files define it or its file is the output
 * of `kubectl get`.
 */
export function needsOverlay({ deployed }: Workload): boolean {
  if (deployed.by === 'compose') return !deployed.isInOneFile;
  return deployed.by === 'kubectl' && deployed.isPatchable && deployed.isSnapshot;
}
