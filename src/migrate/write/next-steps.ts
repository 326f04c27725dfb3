import { dirname, join, resolve } from 'node:path';
import { version } from '../../assets.js';
import { shellWord } from '../../config/show/shell-text.js';
import type { Settings } from '../../server/settings/settings-table.js';
import type { Finding } from '../findings.js';
import type { Installation } from '../read/installation.js';
import { policyDirectoryInContainer } from '../read/locate-policies.js';
import type { Deployed, PublishedPort } from '../read/workload.js';
import type { Report } from '../report.js';
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
  const added = Object.entries(target.variables).map(([name, value]) => `- \`${name}=${value}\``);
  const image =
    pick &&
    `- \`${target.image}\` takes the place of \`${pick.workload.image || 'the image that was built'}\`.`;
  const unset =
    `These variables were unset, and weir has other defaults than envoyproxy/ratelimit. ${
      deployment.isAdded ? 'They are added so that nothing changes; ' : 'Add them so that nothing changes; '
    }` +
    `${deployment.isAdded ? 'remove' : 'leave out'} a line to have the default of weir (\`docs/migrate.md\` has both):`;
  const steps = [
    'Make the image in the sources of weir:\n' +
      `   \`docker build -f deploy/Dockerfile -t ${target.image} .\`\n` +
      `   ${pushOf(target.image)}${pullNote(pick?.workload.deployed)}`,
    ...stepsOf(written),
  ];
  const paragraphs = [
    '# From envoyproxy/ratelimit to weir',
    `\`weir migrate\` ${version()} made these files from ${sources.map(code).join(', ')}. It deployed nothing.`,
    '## What is different',
    [
      ...(image === undefined ? [] : [image]),
      ...deployment.files.map(({ path, note }) => `- \`${path}\`: ${note}.`),
    ].join('\n'),
    ...(added.length === 0 ? [] : [unset, added.join('\n')]),
    '## What is left to decide',
    listOf(report.decide) || 'Nothing.',
    ...(report.advice.length === 0 ? [] : ['## Good to know', listOf(report.advice)]),
    '## What to do next',
    ...(report.decide.length === 0
      ? []
      : ['First look at what is left to decide, above, and change what it names.']),
    steps.map((step, i) => `${i + 1}. ${step}`).join('\n'),
  ];
  return `${paragraphs.join('\n\n')}\n`;
}

/** Returns a warning if the `pull_policy` of compose prevents the use of an image that was built locally. */
function pullNote(deployed: Deployed | undefined): string {
  const policy = deployed?.by === 'compose' ? deployed.pullPolicy : '';
  if (policy === '' || /^(?:missing|if_not_present|never)$/.test(policy)) return '';
  return (
    ` Your compose file has \`pull_policy: ${policy}\`, with which docker compose takes no image that was only ` +
    'made on this machine: push it, or remove that line.'
  );
}

/** An image name without a registry host refers to Docker Hub, where users cannot push `weir`. */
function pushOf(image: string): string {
  return /^[^/]*[.:][^/]*\//.test(image)
    ? `Push it: \`docker push ${image}\`.`
    : 'Where it is pulled from a registry, run `weir migrate` again with `--force` and ' +
        '`--image <registry>/weir:<version>`, and push it under that name.';
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
    'Check the policies, every file that the server will load: ' +
      `\`weir ratelimit-config-check -config_dir ${shellWord(checked)}${merge}\`.`,
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
  if (name === undefined)
    return ['Make the changes by hand, as said above, and deploy the result as you always do.'];
  const file = join(directory, name);
  switch (deployed.by) {
    case 'compose':
      return composeSteps(written, deployed, file);
    case 'kubectl':
      return [
        ...(deployment.overlay === undefined
          ? applySteps(directory, deployment)
          : [
              'Change image and variables, and nothing else: ' +
                `\`kubectl patch ${deployed.owner} --patch-file ${shellWord(file)}\`. To see the result first, add ` +
                '`--dry-run=server -o yaml`.',
            ]),
        ...(deployed.isPatchable
          ? [
              `Wait until it serves: \`kubectl rollout status ${deployed.owner}\`.` +
                (deployed.probes === 'requests' ? ' Its probes ask `/healthcheck`, as before.' : '') +
                (deployed.probes === 'none' ? ' It has no probes: add one that asks `/healthcheck`.' : ''),
              `Back again: \`kubectl rollout undo ${deployed.owner}\`.`,
            ]
          : ['Back again: the same with the old file.']),
      ];
    case 'chart':
      return chartSteps(file);
    case 'envoy-gateway':
      return [
        ...(deployed.as === 'values' ? chartSteps(file).slice(0, 1) : []),
        ...(deployed.as === 'manifest' ? applySteps(directory, deployment) : []),
        ...(deployed.as === 'file'
          ? [
              `Give ${code(file)} to the controller: as \`envoy-gateway.yaml\` of its ConfigMap ` +
                '`envoy-gateway-config`, or below `config.envoyGateway` in the values of its chart.',
            ]
          : []),
        'The controller reads its configuration when it starts: ' +
          '`kubectl -n envoy-gateway-system rollout restart deployment/envoy-gateway`. It then runs weir in the ' +
          'place of the other service; policies stay as they are.',
        'Back again: the same with the old configuration.',
      ];
  }
}

/** Each file is named, because kubectl would read a policy in the directory as a manifest. */
function applySteps(directory: string, { names }: Deployment): readonly string[] {
  const all = [...names.values()].map((name) => ` -f ${shellWord(join(directory, name))}`).join('');
  return [`See what would change, and change it: \`kubectl diff${all}\`, \`kubectl apply${all}\`.`];
}

function chartSteps(file: string): readonly string[] {
  return [
    `Give the values to your release: \`helm upgrade <release> <chart> -f ${shellWord(file)}\`.`,
    'Back again: `helm rollback <release>`.',
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
      : ` It mounts the policies of ${[report.directory ?? report.files].flat().map(code).join(', ')}, as before; ` +
        'those that were written are a copy.';
  return [
    (isOverlay
      ? 'Replace the service, and it alone: the written file is put over yours, which stay as they are.'
      : 'Replace the service, and it alone. `--project-directory` keeps its project, networks and relative paths.') +
      `${used}${isOverlay && isBuilt ? ' `!reset` needs Docker Compose 2.24 or later.' : ''}\n` +
      `   ${up(isOverlay ? [...files, file] : [file])}`,
    healthStep(settings.port, ports, command(isOverlay ? [...files, file] : [file]), service),
    `When all is well, ${
      isOverlay ? 'keep that file beside the others' : `put that file in the place of ${code(original)}`
    }. Back again: ${up(files)}`,
  ];
}

function dockerSteps({ directory, deployment, settings, target }: Written): readonly string[] {
  const lines = deployment.files.map(({ path }) => path).filter((path) => path === VARIABLES_FILE);
  const env = [...deployment.names.values(), ...lines].map(
    (name) => ` --env-file ${shellWord(join(directory, name))}`,
  );
  const place = deployment.policies;
  const mount =
    place === undefined
      ? ''
      : ` -v ${shellWord(resolve(directory, place))}:${policyDirectoryInContainer(settings)}:ro`;
  return [
    'Start weir where the other service was started, with these variables and policies. With Docker alone:\n' +
      `   \`docker run${env.join('')}${mount} ${published(settings)} ${target.image} /bin/ratelimit\``,
    healthStep(settings.port, undefined),
  ];
}

function published({ grpcPort, port }: Settings): string {
  return [grpcPort, port].map((one) => `-p ${one}:${one}`).join(' ');
}

const ONCE = 'answers `OK` once Redis is reached';

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
    return `Ask it: \`curl http://${address}/healthcheck\` ${ONCE}.`;
  }
  if (found !== undefined) {
    return (
      `Ask it: \`curl http://$(${compose} port ${shellWord(service)} ${port})/healthcheck\` ${ONCE}; ` +
      'Docker chooses the port.'
    );
  }
  return (
    `Ask it. Its HTTP port ${port} is not published, so ask within the container: ` +
    `\`${compose} exec ${shellWord(service)} weir health\` succeeds once Redis is reached.`
  );
}
