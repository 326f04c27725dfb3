import { existsSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { manifestsOf, textAt } from '../../config/manifests/manifest.js';
import { shellWord } from '../../config/show/shell-text.js';
import type { Finding } from '../findings.js';
import { chartServices } from './chart-values.js';
import { composeServices } from './compose.js';
import { composeFileIn } from './compose-project.js';
import type { Conversion } from './converted.js';
import { convertEmissary } from './emissary.js';
import { gatewayPolicies, gatewayServices } from './envoy-gateway.js';
import { GatheredVariables } from './gathered-variables.js';
import { type Input, readInput } from './input.js';
import { containers } from './kubernetes.js';
import { convertLimitador } from './limitador.js';
import { isDirectory } from './locate-policies.js';
import {
  type ChosenWorkload,
  chooseWorkload,
  type Environment,
  NO_ENVIRONMENT,
  type Workload,
} from './workload.js';

/** An installation of envoyproxy/ratelimit, as described by the files that the user named. */
export interface Installation {
  /** Directory that the user named. */
  readonly root: string | undefined;
  readonly inputs: readonly Input[];
  /** Workload that runs the service; undefined if no file contains a workload. */
  readonly pick: ChosenWorkload | undefined;
  /** Variables of the service. Variables in env files override those in other files. */
  readonly environment: Environment;
  readonly same: readonly Finding[];
  readonly decide: readonly Finding[];
  /** Limits of another service. If there are any, the other fields are empty. */
  readonly conversions: readonly Conversion[];
}

/** Reads the files and directories of an installation. Returns an error message if they do not describe one. */
export function readInstallation(
  paths: readonly string[],
  envFiles: readonly string[],
  service: string | undefined,
): Installation | string {
  const directories = paths.filter(isDirectory);
  if (directories.length > 1) return `specify only one directory, not ${directories.join(' and ')}`;
  const inputs: Input[] = [];
  for (const file of new Set([...paths.filter((path) => !isDirectory(path)), ...envFiles])) {
    const input = readInput(file);
    if (typeof input === 'string') return input;
    if (input.format === 'policy' && envFiles.includes(file)) {
      return `--env: "${file}" is a policy and contains no variables; pass the file without --env`;
    }
    inputs.push(input);
  }
  const [root] = directories;
  const folders = [
    ...directories,
    ...[...directories, ...inputs.map(({ file }) => dirname(file))].flatMap(chartOfTemplates),
  ];
  const chart = folders.find((folder) => existsSync(join(folder, 'Chart.yaml')));
  if (chart !== undefined) return chartSourceMessage(chart);
  const known = inputs.map(otherSoftware).find((text) => text !== undefined);
  if (known !== undefined) return known;
  const conversions = inputs.flatMap((input) => convertLimitador(input) ?? convertEmissary(input) ?? []);
  if (conversions.length > 0) {
    return { root, inputs, pick: undefined, environment: NO_ENVIRONMENT, same: [], decide: [], conversions };
  }
  const beside = root === undefined || inputs.length > 0 ? undefined : composeFileIn(root);
  if (root !== undefined && beside !== undefined) {
    const path = join(root, beside);
    return (
      `"${root}" contains the compose file ${beside}, which describes the whole service, and not only its ` +
      `policies; run weir migrate ${path}`
    );
  }
  const workloads: Workload[] = [];
  for (const input of inputs) {
    const found = workloadsOf(input, inputs);
    if (typeof found === 'string') return found;
    workloads.push(...found);
  }
  const pick = workloads.length === 0 ? undefined : chooseWorkload(workloads, service);
  if (typeof pick === 'string') return pick;
  if (pick === undefined && service !== undefined)
    return (
      'the files contain no service, so --service has no effect; remove --service, or pass a file with ' +
      'the service'
    );
  const nothing = inputs.find(({ format }) => format === 'values' && workloads.length === 0);
  if (nothing !== undefined) {
    return (
      `"${nothing.file}" has an unknown format; pass a compose file, Kubernetes manifests, Helm values ` +
      'with an image, an Envoy Gateway configuration, variables (KEY=VALUE lines), or a policy'
    );
  }
  const unrelated = root === undefined && pick === undefined ? inputs.find(lacksConfigMap) : undefined;
  if (
    unrelated !== undefined &&
    inputs.every((input) => lacksConfigMap(input) || input.format === 'variables')
  ) {
    const kinds = [...new Set(manifestsOf(unrelated.documents).map(({ kind }) => kind))];
    return (
      `"${unrelated.file}" contains only ${kinds.join(', ')}, but neither policies nor the workload that ` +
      'runs the service; pass the manifests of the Deployment and the ConfigMap'
    );
  }
  return {
    root,
    inputs,
    pick,
    environment: environmentOf(pick?.workload.environment ?? NO_ENVIRONMENT, inputs),
    same: [...(pick?.workload.same ?? []), ...inputs.flatMap(gatewayPolicies)],
    decide: pick?.workload.decide ?? [],
    conversions: [],
  };
}

/** Returns whether a file contains manifests but no ConfigMap. */
function lacksConfigMap({ format, documents }: Input): boolean {
  return format === 'kubernetes' && !manifestsOf(documents).some(({ kind }) => kind === 'ConfigMap');
}

/** Returns the folder of a chart if `folder` contains the chart's templates. */
function chartOfTemplates(folder: string): readonly string[] {
  return basename(resolve(folder)) === 'templates' ? [join(folder, '..')] : [];
}

/** Returns the error message for the source of a chart. */
export function chartSourceMessage(folder: string): string {
  const render = `helm template ${shellWord(folder)} > manifest.yaml`;
  return (
    `"${folder}" contains the source of a Helm chart, and chart templates are not policies; save the ` +
    'rendered manifest, and pass that file: `helm get manifest <release> > manifest.yaml`, or ' +
    `\`${render}\``
  );
}

/** Returns an error message with a remedy for a known file of other software; undefined for other files. */
function otherSoftware({ file, documents }: Input): string | undefined {
  const [manifest] = manifestsOf(documents).filter(
    ({ kind, fields }) =>
      kind === 'RateLimitConfig' && textAt(fields, 'apiVersion').startsWith('ratelimit.solo.io/'),
  );
  if (manifest !== undefined) {
    return (
      `"${file}" is a Gloo RateLimitConfig, which weir migrate does not convert. Copy ` +
      'spec.raw.descriptors to a policy with a domain, and rename rateLimit and requestsPerUnit to ' +
      'rate_limit and requests_per_unit. Keep the actions of spec.raw.rateLimits in Envoy. weir has no ' +
      'equivalent for setDescriptors'
    );
  }
  const isChart = documents.some(
    (document) =>
      /^v[12]$/.test(textAt(document, 'apiVersion')) &&
      textAt(document, 'name') !== '' &&
      textAt(document, 'version') !== '',
  );
  return isChart && basename(file) === 'Chart.yaml' ? chartSourceMessage(dirname(file)) : undefined;
}

/**
 * Returns the workloads in a file. Returns an error message if a file of the same compose project is invalid. `inputs`
 * are all files.
 */
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

/** Adds the variables of env files. */
function environmentOf(own: Environment, inputs: readonly Input[]): Environment {
  const gathered = new GatheredVariables(own);
  for (const { file, format, text } of inputs) if (format === 'variables') gathered.addEnvFile(file, text);
  return gathered;
}
