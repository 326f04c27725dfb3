import type { Workload } from '../read/workload.js';
import type { Target } from './edit-workload.js';

/** A file that is put over those of the installation, which stay as they are. */
export interface Overlay {
  /** Name of the file. */
  readonly name: string;
  readonly text: string;
}

/** The overlay that changes image and variables of a workload; undefined where the way it is deployed has none. */
export function overlayOf({ deployed }: Workload, { image, variables }: Target): Overlay | undefined {
  const added = Object.entries(variables);
  switch (deployed.by) {
    case 'compose': {
      // Values of compose name variables with a dollar.
      const quoted = (text: string): string => JSON.stringify(text.replaceAll('$', '$$$$'));
      const lines = [
        'services:',
        `  ${JSON.stringify(deployed.service)}:`,
        `    image: ${quoted(image)}`,
        // With a build, compose would make the old image under the new name.
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

/** Whether only an overlay changes the workload as it is deployed, and nothing else. */
export function needsOverlay({ deployed }: Workload): boolean {
  if (deployed.by === 'compose') return !deployed.isInOneFile;
  return deployed.by === 'kubectl' && deployed.isPatchable && deployed.isSnapshot;
}
