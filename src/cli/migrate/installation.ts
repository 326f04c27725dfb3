import { composeFileIn, composeServices } from './compose.js';
import { type Input, InputError, readInput } from './input.js';
import { containers } from './kubernetes.js';
import { isDirectory } from './locate-policies.js';
import { type ChosenWorkload, chooseWorkload, Environment } from './workload.js';

/** An installation of envoyproxy/ratelimit, as described by the files that the user named. */
export interface Installation {
  /** Directory that the user named. */
  readonly root: string | undefined;
  readonly inputs: readonly Input[];
  /** Workload that runs the service; undefined if no file contains a workload. */
  readonly pick: ChosenWorkload | undefined;
  /** Variables of the service. Variables in env files override those in other files. */
  readonly environment: Environment;
}

/** Reads the files and directories of an installation. Throws an {@link InputError} if they do not describe one. */
export function readInstallation(
  paths: readonly string[],
  envFiles: readonly string[],
  service: string | undefined,
): Installation {
  const [root, ...roots] = paths.filter(isDirectory);
  if (root !== undefined && roots.length > 0)
    throw new InputError(`specify only one directory, not ${[root, ...roots].join(' and ')}`);
  const inputs = [...new Set([...paths.filter((path) => !isDirectory(path)), ...envFiles])].map(readInput);
  const policy = inputs.find(({ file, format }) => format === 'policy' && envFiles.includes(file));
  if (policy !== undefined) {
    throw new InputError(
      `--env: "${policy.file}" is a policy and contains no variables; pass the file without --env`,
    );
  }
  const compose = root === undefined ? undefined : composeFileIn(root);
  if (root !== undefined && compose !== undefined) {
    throw new InputError(
      `"${root}" contains the compose file ${compose}, and not only policies; pass the compose file, and the ` +
        'directory of the policies',
    );
  }
  const workloads = [...composeServices(inputs), ...containers(inputs)];
  if (workloads.length === 0) rejectUnrelated(inputs, service);
  const pick = workloads.length === 0 ? undefined : chooseWorkload(workloads, service);
  const environment = pick?.workload.environment ?? new Environment();
  for (const { file, format, text } of inputs) if (format === 'variables') environment.addEnvFile(file, text);
  return { root, inputs, pick, environment };
}

/** Throws if files without a workload are of another kind, or if `--service` cannot have an effect. */
function rejectUnrelated(inputs: readonly Input[], service: string | undefined): void {
  if (service !== undefined) {
    throw new InputError(
      'the files contain no service, so --service has no effect; remove --service, or pass a file with the ' +
        'service',
    );
  }
  const gateway = inputs.find(({ text }) => /^\s*kind:\s*EnvoyGateway\s*$/m.test(text));
  if (gateway === undefined) return;
  throw new InputError(
    `"${gateway.file}" is the configuration of Envoy Gateway; pass the Deployment that Envoy Gateway creates: ` +
      '`kubectl get deployment -n envoy-gateway-system envoy-ratelimit -o yaml > ratelimit.yaml`',
  );
}
