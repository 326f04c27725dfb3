import { dirname, join, resolve } from 'node:path';
import type { Settings } from '../../../server/settings/settings-table.js';
import { version } from '../../version.js';
import { shellWord } from '../../writing/written-files.js';
import type { Installation } from '../read/installation.js';
import { inContainer } from '../read/locate-policies.js';
import type { Report } from '../report.js';
import type { Deployment } from './deployment.js';
import type { Target } from './edit-workload.js';

/** Everything that the page is about. */
export interface Written {
  /** Where the files are written to. */
  readonly directory: string;
  readonly installation: Installation;
  readonly deployment: Deployment;
  readonly target: Target;
  readonly report: Report;
  readonly settings: Settings;
}

/** README.md of what `--write` puts out: what was changed, what is left to decide, and the commands that come next. */
export function nextSteps(written: Written): string {
  const { installation, deployment, target, report } = written;
  const { pick, inputs, root } = installation;
  const sources = [...inputs.map(({ file }) => file), ...(root === undefined ? [] : [root])];
  const added = Object.entries(target.variables).map(([name, value]) => `- \`${name}=${value}\``);
  const image =
    pick &&
    `- \`${target.image}\` takes the place of \`${pick.workload.image || 'the image that was built'}\`.`;
  const unset =
    'These variables were unset, and unset means something else here. They are added so that nothing changes; ' +
    'remove a line to have the default of weir (`docs/migrate.md` has both):';
  const steps = [
    'Make the image in the sources of weir, and push it to where it is pulled from:\n' +
      `   \`docker build -f deploy/Dockerfile -t ${target.image} .\``,
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
    report.decide.map(({ about, text }) => `- ${about}: ${text}`).join('\n') || 'Nothing.',
    '## What to do next',
    steps.map((step, i) => `${i + 1}. ${step}`).join('\n'),
  ];
  return `${paragraphs.join('\n\n')}\n`;
}

function code(text: string): string {
  return `\`${text}\``;
}

function stepsOf(written: Written): readonly string[] {
  const checked = policyFilesOf(written);
  const check =
    checked === undefined ? [] : [`Check the policies: \`weir check-config ${shellWord(checked)}\`.`];
  return [...check, ...deploySteps(written)];
}

/** What check-config is given: the directory that was written, or the manifest with the ConfigMap. */
function policyFilesOf({ directory, installation, deployment }: Written): string | undefined {
  if (deployment.policies !== undefined) return join(directory, deployment.policies);
  if (installation.pick?.workload.deployed.by === 'envoy-gateway') return undefined;
  const maps = installation.inputs.find(
    ({ text, format }) => format === 'kubernetes' && /\bkind["']?:\s*["']?ConfigMap\b/.test(text),
  );
  const name = maps && deployment.names.get(maps);
  return name === undefined ? undefined : join(directory, name);
}

function deploySteps(written: Written): readonly string[] {
  const { directory, installation, deployment } = written;
  const workload = installation.pick?.workload;
  if (workload === undefined) return dockerSteps(written);
  const { deployed, input } = workload;
  const file = join(directory, deployment.names.get(input) ?? '');
  switch (deployed.by) {
    case 'compose':
      return composeSteps(written, input.file, file, deployed.service);
    case 'kubectl':
      return [
        ...applySteps(directory),
        `Wait until it serves: \`kubectl rollout status ` +
          `${deployed.owner}\`. Its probes ask \`/healthcheck\`, as before.`,
        `Back again: \`kubectl rollout undo ${deployed.owner}\`.`,
      ];
    case 'chart':
      return chartSteps(file);
    case 'envoy-gateway':
      return [
        ...(deployed.as === 'values' ? chartSteps(file).slice(0, 1) : []),
        ...(deployed.as === 'manifest' ? applySteps(directory) : []),
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

function applySteps(directory: string): readonly string[] {
  const all = shellWord(directory);
  return [`See what would change, and change it: \`kubectl diff -f ${all}\`, \`kubectl apply -f ${all}\`.`];
}

function chartSteps(file: string): readonly string[] {
  return [
    `Give the values to your release: \`helm upgrade <release> <chart> -f ${shellWord(file)}\`.`,
    'Back again: `helm rollback <release>`.',
  ];
}

function composeSteps(
  { settings }: Written,
  original: string,
  file: string,
  service: string,
): readonly string[] {
  const project = `docker compose --project-directory ${shellWord(dirname(original))}`;
  return [
    'Replace the service, and it alone. The option keeps the project, its networks and its relative paths:\n' +
      `   \`${project} -f ${shellWord(file)} up -d ${shellWord(service)}\``,
    ...healthSteps(settings),
    `When all is well, put that file in the place of ${code(original)}. Back again: ` +
      `\`${project} -f ${shellWord(original)} up -d ${shellWord(service)}\``,
  ];
}

function dockerSteps({ directory, deployment, settings, target }: Written): readonly string[] {
  const env = [...deployment.names.values()].map((name) => ` --env-file ${shellWord(join(directory, name))}`);
  const place = deployment.policies;
  const mount =
    place === undefined ? '' : ` -v ${shellWord(resolve(directory, place))}:${inContainer(settings)}:ro`;
  return [
    'Start weir where the other service was started, with these variables and policies. With Docker alone:\n' +
      `   \`docker run${env.join('')}${mount} -p 8081:8081 -p 8080:8080 ${target.image} /bin/ratelimit\``,
    ...healthSteps(settings),
  ];
}

function healthSteps({ port }: Settings): readonly string[] {
  return [
    `Ask it, under the address where its HTTP port is published: \`curl http://127.0.0.1:${port}/healthcheck\` ` +
      'answers `OK` once Redis is reached.',
  ];
}
