import { symlinkSync } from 'node:fs';
import { delimiter } from 'node:path';
import { preloading } from '../process/preload.js';
import { runToEnd } from '../process/processes.js';
import { TempDir } from '../process/temp-dir.js';
import { toolPath } from '../process/tools.js';
import { waitFor } from '../process/wait-for.js';
import { CommandHost } from '../weir/commands.js';
import { startWeir, type WeirOptions, type WeirServer } from '../weir/weir.js';
import {
  HoldTokens,
  type PageCommand,
  type PageExample,
  type PageSection,
  withShown,
} from './page-examples.js';

/** Settings of a process with a fixed clock (fixed-clock.ts). */
export const FIXED_CLOCK = {
  NODE_OPTIONS: preloading('test/support/clock/fixed-clock.js'),
};

/** Matches the settings of an example whose first command starts the server. */
const START = /^((?:\w+=\S+\s+)*)(?:weir serve|npm start)\b/;
const GRPCURL = /^grpcurl /;
/** Matches a command of weir without quotes, pipes and the like. */
const WEIR = /^weir(?: +[\w./:=*@-]+)+$/;

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
 * Runs examples with a fixed clock, each with its own policy. An example that sets variables has its own server;
 * the others share servers, but no server has two policies for a domain. Commands of weir share a process.
 */
export class ExampleRunner {
  readonly #host = new CommandHost(FIXED_CLOCK);
  readonly #folder = new TempDir();
  /** The shared servers of examples. */
  readonly #shared = new Map<PageExample, WeirServer>();

  private constructor() {
    symlinkSync(toolPath('grpcurl'), this.#folder.join('grpcurl'));
  }

  /** Starts the servers that the examples share. */
  static async begin(sections: readonly PageSection[]): Promise<ExampleRunner> {
    const runner = new ExampleRunner();
    /** The examples of each server, by domain. */
    const servers: Map<string, PageExample>[] = [];
    for (const example of sections.flatMap(({ examples }) => examples)) {
      if (!needsServer(example) || settingsOf(example.commands[0]) !== undefined) continue;
      const domain = /^domain: (\S+)/m.exec(example.policy)?.[1] as string;
      const free = servers.find((examples) => !examples.has(domain));
      if (free === undefined) servers.push(new Map([[domain, example]]));
      else free.set(domain, example);
    }
    for (const examples of servers) {
      const folder = new TempDir();
      for (const [domain, { policy }] of examples) folder.write(`${domain}.yaml`, policy);
      const server = await start({ env: { CONFIG_PATH: folder.path } });
      for (const example of examples.values()) runner.#shared.set(example, server);
    }
    return runner;
  }

  /**
   * Runs the examples of a section in order. Resolves with every answer, with the page's digits where values are
   * measured. All policies of the section are in one folder as `<name>.yaml`; any other `.yaml` file that a weir
   * command names is the policy above the command.
   */
  async run({ examples }: PageSection): Promise<Map<PageCommand, readonly string[]>> {
    const folder = new TempDir();
    const answers = new Map<PageCommand, readonly string[]>();
    for (const { name, policy } of examples) folder.write(`${name}.yaml`, policy);
    for (const example of examples) await this.#runExample(example, examples, folder, answers);
    return answers;
  }

  async #runExample(
    example: PageExample,
    examples: readonly PageExample[],
    folder: TempDir,
    answers: Map<PageCommand, readonly string[]>,
  ): Promise<void> {
    const { commands, policy } = example;
    const settings = settingsOf(commands[0]);
    const own = settings && (await start({ policy, env: settings }));
    const tokens = new HoldTokens();
    try {
      const server = own ?? this.#shared.get(example);
      for (const command of settings === undefined ? commands : commands.slice(1)) {
        for (const [file, name] of command.text.matchAll(/([\w./-]+)\.ya?ml\b/g)) {
          if (!examples.some((one) => one.name === name)) folder.write(file, policy);
        }
        const text = tokens.inCommand(command.text);
        const printed = await this.#runCommand({ ...command, text }, folder, server);
        tokens.note(command.answer, printed);
        answers.set(command, withShown(command.answer, printed.replace(/\n+$/, '')));
      }
    } finally {
      await own?.stop();
    }
  }

  async #runCommand(
    { page, text, line }: PageCommand,
    folder: TempDir,
    server?: WeirServer,
  ): Promise<string> {
    if (WEIR.test(text)) {
      const args = text.split(/ +/).slice(1);
      return (await this.#host.run({ args, folder: folder.path })).printed;
    }
    if (!GRPCURL.test(text))
      throw new Error(`${page}:${line + 1}: only grpcurl and plain weir commands can be run here`);
    const ask = text.replaceAll('127.0.0.1:8081', `127.0.0.1:${server?.grpcPort}`);
    const PATH = [this.#folder.path, process.env['PATH']].join(delimiter);
    const options = { cwd: folder.path, bareEnvironment: true, env: { PATH } };
    return (await runToEnd('sh', ['-c', `exec 2>&1\n${ask}`], options)).stdout;
  }
}

const needsServer = ({ commands }: PageExample): boolean => commands.some(({ text }) => GRPCURL.test(text));

/** Starts a server. Its health may depend on a Redis that the example does not use, so the log shows when it serves. */
async function start(options: WeirOptions): Promise<WeirServer> {
  const env = { ...FIXED_CLOCK, ...options.env };
  const server = await startWeir({ ...options, env, untilHealthy: false });
  await waitFor('the start line', () => {
    if (!server.process.isRunning()) return true;
    return server.log().some(({ msg }) => msg === 'weir serves') || undefined;
  });
  if (!server.process.isRunning())
    throw new Error(`weir ended; it printed:\n${server.process.lines().join('\n')}`);
  return server;
}
