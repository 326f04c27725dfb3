import { dirname, join, resolve } from 'node:path';
import { version } from '../../assets.js';
import { shellWord } from '../../config/show/shell-text.js';
import type { Settings } from '../../server/settings/settings-table.js';
import type { Finding } from '../findings.js';
import type { Installation } from '../read/installation.js';
import { policyDirectoryInContainer } from '../read/locate-policies.js';
import type { Deployed, PublishedPort } from '../read/workload.js';
import type { Report } from '../report.js';
import { EFFECTS_OF_OLD_DEFAULTS } from '../variable-findings.js';
import { type Deployment, VARIABLES_FILE } from './deployment.js';
import type { Target } from './edit-workload.js';

/** Input of {@link nextSteps}. */
export interface Written {
  /** Directory of the written files. */
  readonly directory: string;
  readonly installation: Installation;
  readonly deployment: Deployment;
  readonly target: Target;
  readonly report: Report;
  readonly settings: Settings;
}

/** Returns the README.md that `--write` writes: changes, open decisions, and the next commands. */
export function nextSteps(written: Written): string {
  const { installation, deployment, target, report } = written;
  const { pick, inputs, root } = installation;
  const sources = [...inputs.map(({ file }) => file), ...(root === undefined ? [] : [root])];
  const added = Object.entries(target.variables).map(([name, value]) => addedLine(name, value));
  const previous = pick?.workload.image ? `\`${pick.workload.image}\`` : 'the locally built image';
  const image = pick && `- \`${target.image}\` replaces ${previous}.`;
  const unset =
    'These variables were unset, and their defaults in weir and envoyproxy/ratelimit differ. ' +
    (deployment.isAdded
      ? 'The written files set the defaults of envoyproxy/ratelimit. Remove'
      : 'To keep the defaults of envoyproxy/ratelimit, set these variables. Omit') +
    " a line to use weir's default (`docs/migrate.md` in the weir repository lists both defaults):";
  const steps = [
    'Build the image in a checkout of the weir repository:\n   `docker build -f deploy/Dockerfile -t ' +
      `${target.image} .\`\n   ${pushOf(target.image)}${pullNote(pick?.workload.deployed)}`,
    ...stepsOf(written),
  ];
  const paragraphs = [
    '# From envoyproxy/ratelimit to weir',
    `\`weir migrate\` ${version()} created these files from ${sources.map(code).join(', ')}. Nothing ` +
      'has been deployed.',
    '## Changes',
    [
      ...(image === undefined ? [] : [image]),
      ...deployment.files.map(({ path, note }) => `- \`${path}\`: ${note}.`),
    ].join('\n'),
    ...(added.length === 0 ? [] : [unset, added.join('\n')]),
    '## Open decisions',
    listOf(report.decide) || 'None.',
    ...(report.advice.length === 0 ? [] : ['## Good to know', listOf(report.advice)]),
    '## Next steps',
    ...(report.decide.length === 0
      ? []
      : ['Make the decisions in "Open decisions" above, and change the files accordingly.']),
    steps.map((step, i) => `${i + 1}. ${step}`).join('\n'),
  ];
  return `${paragraphs.join('\n\n')}\n`;
}

/** Returns a warning if the `pull_policy` of compose prevents the use of an image that was built locally. */
function pullNote(deployed: Deployed | undefined): string {
  const policy = deployed?.by === 'compose' ? deployed.pullPolicy : '';
  if (policy === '' || /^(?:missing|if_not_present|never)$/.test(policy)) return '';
  return (
    ` Your compose file has \`pull_policy: ${policy}\`, so docker compose does not use an image that ` +
    'exists only on this machine. Push the image, or remove that line.'
  );
}

/** An image name without a registry host refers to Docker Hub, where users cannot push `weir`. */
function pushOf(image: string): string {
  return /^[^/]*[.:][^/]*\//.test(image)
    ? `Push the image: \`docker push ${image}\`.`
    : 'If your machines pull the image from a registry, tag and push it as `<registry>/weir:<version>`. Then ' +
        'run `weir migrate` again: `--image <registry>/weir:<version>` writes this name to the files, and ' +
        '`--force` overwrites them.';
}

function addedLine(name: string, value: string): string {
  const effect = EFFECTS_OF_OLD_DEFAULTS[name];
  return `- \`${name}=${value}\`${effect === undefined ? '' : `: ${effect}`}`;
}

function listOf(findings: readonly Finding[]): string {
  return findings.map(({ about, text }) => `- ${about}: ${text}`).join('\n');
}

function code(text: string): string {
  return `\`${text}\``;
}

function stepsOf(written: Written): readonly string[] {
  return [...checkSteps(written), ...deploySteps(written)];
}

/**
 * Returns the step that checks the policies. A directory is checked like the server loads it: every file, with the
 * rules of the reference.
 */
function checkSteps(written: Written): readonly string[] {
  const checked = policyFilesOf(written);
  if (checked === undefined) return [];
  if (written.deployment.policies === undefined)
    return [`Check the policies: \`weir check-config ${shellWord(checked)}\`.`];
  const merge = written.settings.mergeDomains ? ' -merge_domain_configs=true' : '';
  return [
    `Check the policies in ${code(checked)}, which contains copies of exactly the files that weir ` +
      `loads: \`weir ratelimit-config-check -config_dir ${shellWord(checked)}${merge}\`.`,
  ];
}

/** Returns the path for the check: the written directory, or the manifest with the ConfigMap. */
function policyFilesOf({ directory, installation, deployment }: Written): string | undefined {
  if (deployment.policies !== undefined) return join(directory, deployment.policies);
  if (installation.pick?.workload.deployed.by === 'envoy-gateway') return undefined;
  const maps = installation.inputs.find(
    ({ text, format }) => format === 'kubernetes' && /\bkind["']?:\s*["']?ConfigMap\b/.test(text),
  );
  // With a patch, the manifests stay where they are.
  if (maps !== undefined && deployment.overlay !== undefined) return maps.file;
  const name = maps && deployment.names.get(maps);
  return name === undefined ? undefined : join(directory, name);
}

function deploySteps(written: Written): readonly string[] {
  const { directory, installation, deployment } = written;
  const workload = installation.pick?.workload;
  if (workload === undefined) return dockerSteps(written);
  const { deployed, input } = workload;
  const name = deployment.overlay ?? deployment.names.get(input);
  // Without a written file, there is no command to deploy it.
  if (name === undefined) return ['Make the changes above by hand, and deploy the result as usual.'];
  const file = join(directory, name);
  switch (deployed.by) {
    case 'compose':
      return composeSteps(written, deployed, file);
    case 'kubectl':
      return [
        ...(deployment.overlay === undefined
          ? applySteps(directory, deployment)
          : [
              `Change only the image and the variables: \`kubectl patch ${deployed.owner} --patch-file ` +
                `${shellWord(file)}\`. To preview the result, add \`--dry-run=server -o yaml\`.`,
            ]),
        ...(deployed.isPatchable
          ? [
              `Wait until weir is ready: \`kubectl rollout status ${deployed.owner}\`.` +
                (deployed.probes === 'requests' ? ' The probes call `/healthcheck`, as before.' : '') +
                (deployed.probes === 'none'
                  ? ' The container has no probes. Add a readinessProbe that calls `/healthcheck`.'
                  : ''),
              `To roll back, run \`kubectl rollout undo ${deployed.owner}\`.`,
            ]
          : ['To roll back, repeat these steps with the old file.']),
      ];
    case 'chart':
      return chartSteps(file);
    case 'envoy-gateway':
      return [
        ...(deployed.as === 'values' ? chartSteps(file).slice(0, 1) : []),
        ...(deployed.as === 'manifest' ? applySteps(directory, deployment) : []),
        ...(deployed.as === 'file'
          ? [
              `Add ${code(file)} to the controller's configuration: as \`envoy-gateway.yaml\` in the ` +
                "ConfigMap `envoy-gateway-config`, or under `config.envoyGateway` in the chart's values.",
            ]
          : []),
        'Restart the controller, which reads its configuration only when it starts: `kubectl -n ' +
          'envoy-gateway-system rollout restart deployment/envoy-gateway`. The controller then runs weir ' +
          'instead of envoyproxy/ratelimit. Policies stay unchanged.',
        'To roll back, repeat these steps with the old configuration.',
      ];
  }
}

/** Each file is named, because kubectl would read a policy in the directory as a manifest. */
function applySteps(directory: string, { names }: Deployment): readonly string[] {
  const all = [...names.values()].map((name) => ` -f ${shellWord(join(directory, name))}`).join('');
  return [`Review the changes with \`kubectl diff${all}\`, and apply them with \`kubectl apply${all}\`.`];
}

function chartSteps(file: string): readonly string[] {
  return [
    `Upgrade your release with the new values: \`helm upgrade <release> <chart> -f ${shellWord(file)}\`.`,
    'To roll back, run `helm rollback <release>`.',
  ];
}

function composeSteps(
  { settings, deployment, report }: Written,
  { service, files, isBuilt, ports }: Extract<Deployed, { by: 'compose' }>,
  file: string,
): readonly string[] {
  const [original = ''] = files;
  const project = `docker compose --project-directory ${shellWord(dirname(original))}`;
  const command = (all: readonly string[]): string =>
    `${project}${all.map((one) => ` -f ${shellWord(one)}`).join('')}`;
  const up = (all: readonly string[]): string => `\`${command(all)} up -d ${shellWord(service)}\``;
  const isOverlay = deployment.overlay !== undefined;
  const used =
    report.files.length === 0
      ? ''
      : ' The service mounts the policies in ' +
        `${[report.directory ?? report.files].flat().map(code).join(', ')}, as before, and not the ` +
        'copies.';
  return [
    (isOverlay
      ? `Replace only this service. ${code(file)} overrides your files, which stay unchanged.`
      : `Replace only this service. With \`--project-directory\`, docker compose uses the project, networks ` +
        `and relative paths of ${code(original)}.`) +
      `${used}${isOverlay && isBuilt ? ' `!reset` needs Docker Compose 2.24 or later.' : ''}\n` +
      `   ${up(isOverlay ? [...files, file] : [file])}`,
    healthStep(settings.port, ports, command(isOverlay ? [...files, file] : [file]), service),
    `To roll back, run ${up(files)}. If the service works as expected, ` +
      (isOverlay
        ? `move ${code(file)} next to your other files, and add it with \`-f\` to all commands.`
        : `keep a copy of ${code(original)} for a rollback, and replace it with ${code(file)}.`),
  ];
}

function dockerSteps({ directory, deployment, settings, target }: Written): readonly string[] {
  const lines = deployment.files.map(({ path }) => path).filter((path) => path === VARIABLES_FILE);
  const env = [...new Set([...deployment.names.values(), ...lines])].map(
    (name) => ` --env-file ${shellWord(join(directory, name))}`,
  );
  const place = deployment.policies;
  const mount =
    place === undefined
      ? ''
      : ` -v ${shellWord(resolve(directory, place))}:${policyDirectoryInContainer(settings)}:ro`;
  return [
    'Start weir with these variables and policies instead of envoyproxy/ratelimit. With Docker:\n   ' +
      `\`docker run${env.join('')}${mount} ${published(settings)} ${target.image} /bin/ratelimit\``,
    healthStep(settings.port, undefined),
  ];
}

function published({ grpcPort, port }: Settings): string {
  return [grpcPort, port].map((one) => `-p ${one}:${one}`).join(' ');
}

const ONCE = 'returns `OK` as soon as weir has reached Redis';

/**
 * Returns the step that checks the health. `ports` are the published ports; undefined means that all ports are
 * reachable unchanged. `compose` is the compose command with its files, if compose runs the service.
 */
function healthStep(
  port: number,
  ports: readonly PublishedPort[] | undefined,
  compose = '',
  service = '',
): string {
  const found = ports?.findLast(({ target }) => target === port);
  if (ports === undefined || found?.published !== undefined) {
    const host = /^(?:|0\.0\.0\.0|::)$/.test(found?.host ?? '') ? '127.0.0.1' : (found?.host ?? '');
    const address = `${host.includes(':') ? `[${host}]` : host}:${found?.published ?? port}`;
    return `Check that weir is healthy: \`curl http://${address}/healthcheck\` ${ONCE}.`;
  }
  if (found !== undefined) {
    return (
      `Check that weir is healthy: \`curl http://$(${compose} port ${shellWord(service)} ` +
      `${port})/healthcheck\` ${ONCE}. Docker chooses the port.`
    );
  }
  return (
    `Check that weir is healthy. The HTTP port ${port} is not published, so run the check in the ` +
    `container: \`${compose} exec ${shellWord(service)} weir health\` succeeds as soon as weir has ` +
    'reached Redis.'
  );
}
