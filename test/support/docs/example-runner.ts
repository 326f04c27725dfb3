import { symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { copyImagePrograms } from '../image/image-programs.js';
import { preloading } from '../process/preload.js';
import { runToEnd } from '../process/processes.js';
import { TempDir } from '../process/temp-dir.js';
import { toolPath } from '../process/tools.js';
import { waitFor } from '../process/wait-for.js';
import { startWeir, type WeirServer } from '../weir/weir.js';
import { type PageCommand, type PageExample, type PageSection, withShown } from './page-examples.js';

/** Settings of a process with a fixed clock (fixed-clock.ts). */
export const FIXED_CLOCK = {
  NODE_OPTIONS: preloading('test/support/clock/fixed-clock.js'),
};

/** Matches the settings of an example whose first command starts the server. */
const START = /^((?:\w+=\S+\s+)*)(?:weir serve|npm start)\b/;
const COMMANDS = /^(?:\w+=\S+\s+)*(?:grpcurl|weir) /;

const settingsOf = (command: PageCommand | undefined): NodeJS.ProcessEnv | undefined => {
  const words = START.exec(command?.text ?? '')?.[1];
  if (words === undefined) return undefined;
  const env = Object.fromEntries(words.split(/\s+/).map((word) => word.split(/=(.*)/s).slice(0, 2)));
  // The example has its own policy.
  delete env['CONFIG_PATH'];
  delete env[''];
  return env;
};

/** Returns an error message for each example of a section that no command uses. */
export function unusedExamples(section: PageSection): string[] {
  const texts = section.examples.flatMap(({ commands }) => commands.map(({ text }) => text)).join('\n');
  return section.examples
    .filter(({ name, commands }) => commands.length === 0 && !texts.includes(`${name}.yaml`))
    .map(
      ({ page, name, line }) =>
        `${page}:${line + 1}: no command in a console block stands below example ${name}`,
    );
}

/**
 * Runs the examples of a section in order, each against its own server with its policy and a fixed clock. Resolves with
 * every answer, with the page's digits where values are measured. All policies of the section are in one folder as
 * `<name>.yaml`; any other `.yaml` file that a weir command names is the policy above the command.
 */
export async function runSection({ examples }: PageSection): Promise<Map<PageCommand, readonly string[]>> {
  const folder = new TempDir();
  const answers = new Map<PageCommand, readonly string[]>();
  try {
    for (const { name, policy } of examples) folder.write(`work/${name}.yaml`, policy);
    const bin = copyImagePrograms(folder.path);
    symlinkSync(toolPath('grpcurl'), join(bin, 'grpcurl'));
    for (const example of examples) await runExample(example, examples, folder, bin, answers);
    return answers;
  } finally {
    folder.remove();
  }
}

async function runExample(
  { commands, policy }: PageExample,
  examples: readonly PageExample[],
  folder: TempDir,
  bin: string,
  answers: Map<PageCommand, readonly string[]>,
): Promise<void> {
  const settings = settingsOf(commands[0]);
  const asked = settings === undefined ? commands : commands.slice(1);
  const server = asked.some(({ text }) => /\bgrpcurl\b/.test(text))
    ? await start(policy, settings)
    : undefined;
  try {
    for (const command of asked) {
      if (!COMMANDS.test(command.text))
        throw new Error(`${command.page}:${command.line + 1}: only grpcurl and weir can be run here`);
      for (const [file, name] of command.text.matchAll(/([\w./-]+)\.ya?ml\b/g)) {
        if (!examples.some((example) => example.name === name)) folder.write(`work/${file}`, policy);
      }
      const text = command.text
        .replaceAll('127.0.0.1:8081', `127.0.0.1:${server?.grpcPort}`)
        .replaceAll('127.0.0.1:8080', `127.0.0.1:${server?.httpPort}`);
      const { stdout } = await runToEnd('sh', ['-c', `exec 2>&1\n${text}`], {
        cwd: folder.join('work'),
        bareEnvironment: true,
        env: { ...FIXED_CLOCK, PATH: [bin, process.env['PATH']].join(delimiter) },
      });
      answers.set(command, withShown(command.answer, stdout.replace(/\n+$/, '')));
    }
  } finally {
    await server?.stop();
  }
}

/** Starts a server. Its health may depend on a Redis that the example does not use, so the log shows when it serves. */
async function start(policy: string, env: NodeJS.ProcessEnv = {}): Promise<WeirServer> {
  const server = await startWeir({ policy, env: { ...FIXED_CLOCK, ...env }, untilHealthy: false });
  await waitFor('the start line', () => {
    if (!server.process.isRunning()) return true;
    return server.log().some(({ msg }) => msg === 'weir serves') || undefined;
  });
  if (!server.process.isRunning())
    throw new Error(`weir ended; it printed:\n${server.process.lines().join('\n')}`);
  return server;
}
