import { join } from 'node:path';
import { manifestsOf } from '../../../config/manifests/manifest.js';
import type { Finding } from '../findings.js';
import { chartServices } from './chart-values.js';
import { composeServices } from './compose.js';
import { composeFileIn } from './compose-project.js';
import { gatewayPolicies, gatewayServices } from './envoy-gateway.js';
import { GatheredVariables } from './gathered-variables.js';
import { type Input, readInput } from './input.js';
import { containers } from './kubernetes.js';
import { isDirectory } from './locate-policies.js';
import { type Environment, NO_ENVIRONMENT, type Pick, pickWorkload, type Workload } from './workload.js';

/** What the files that the user named say of an installation of the reference. */
export interface Installation {
  /** The directory that the user named. */
  readonly root: string | undefined;
  readonly inputs: readonly Input[];
  /** What runs the service; undefined where no file says what runs. */
  readonly pick: Pick | undefined;
  /** The variables of the service; those of env files count before those of other files. */
  readonly environment: Environment;
  readonly same: readonly Finding[];
  readonly decide: readonly Finding[];
}

/** Reads the files and directories of an installation; a sentence where they make none. */
export function readInstallation(
  paths: readonly string[],
  envFiles: readonly string[],
  service: string | undefined,
): Installation | string {
  const directories = paths.filter(isDirectory);
  if (directories.length > 1) return `name one directory only, not ${directories.join(' and ')}`;
  const inputs: Input[] = [];
  for (const file of new Set([...paths.filter((path) => !isDirectory(path)), ...envFiles])) {
    const input = readInput(file);
    if (typeof input === 'string') return input;
    if (input.format === 'policy' && envFiles.includes(file)) {
      return `--env: "${file}" is a policy and holds no variables; name it without --env`;
    }
    inputs.push(input);
  }
  const [root] = directories;
  const beside = root === undefined || inputs.length > 0 ? undefined : composeFileIn(root);
  if (root !== undefined && beside !== undefined) {
    const path = join(root, beside);
    return `"${root}" has the compose file ${beside}, which says more than the directory: weir migrate ${path}`;
  }
  const workloads: Workload[] = [];
  for (const input of inputs) {
    const found = workloadsOf(input, inputs);
    if (typeof found === 'string') return found;
    workloads.push(...found);
  }
  const pick = workloads.length === 0 ? undefined : pickWorkload(workloads, service);
  if (typeof pick === 'string') return pick;
  if (pick === undefined && service !== undefined) return 'there is no service for --service in these files';
  const nothing = inputs.find(({ format }) => format === 'values' && workloads.length === 0);
  if (nothing !== undefined) {
    return (
      `"${nothing.file}" is nothing that is known here: a compose file, manifests of Kubernetes, values of a chart ` +
      'with an image, a configuration of Envoy Gateway, lines of KEY=VALUE, or a policy'
    );
  }
  return {
    root,
    inputs,
    pick,
    environment: environmentOf(pick?.workload.environment ?? NO_ENVIRONMENT, inputs),
    same: [...(pick?.workload.same ?? []), ...inputs.flatMap(gatewayPolicies)],
    decide: pick?.workload.decide ?? [],
  };
}

/** What a file says that may run the service; a sentence where a file beside it is bad. `inputs`: all files. */
export function workloadsOf(input: Input, inputs: readonly Input[]): readonly Workload[] | string {
  switch (input.format) {
    case 'compose':
      return composeServices(input, inputs);
    case 'kubernetes': {
      const all = inputs.flatMap(({ documents }) => manifestsOf(documents));
      return [...containers(input, all), ...gatewayServices(input)];
    }
    case 'values':
      return chartServices(input);
    default:
      return [];
  }
}

/** Adds what env files say. */
function environmentOf(own: Environment, inputs: readonly Input[]): Environment {
  const gathered = new GatheredVariables(own);
  for (const { file, format, text } of inputs) if (format === 'variables') gathered.addEnvFile(file, text);
  return gathered;
}
