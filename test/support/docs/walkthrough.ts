/*
 * Runs the commands of a page from top to bottom in one folder, as a reader would. Blocks that begin with `# file:
 * <path>` or `// file: <path>` are written to that file, and ```console blocks contain commands (`$ …`) with their
 * answers. Programs that keep running (weir, Envoy, an upstream) run until the page starts them again, until the
 * comment `$ # Ctrl-C in the terminal of weir`, or until the end of the page.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { LONG_TIMEOUTS } from '../envoy/stack.js';
import { copyImagePrograms } from '../image/image-programs.js';
import { freePorts } from '../process/free-port.js';
import { httpRequest } from '../process/http-client.js';
import { runToEnd, type StartedProcess, startProcess } from '../process/processes.js';
import { TempDir } from '../process/temp-dir.js';
import { optionalToolPath, repositoryRoot, toolPath } from '../process/tools.js';
import { waitFor } from '../process/wait-for.js';
import { FIXED_CLOCK } from './example-runner.js';
import { commandsOf, HoldTokens, type PageCommand, withShown } from './page-examples.js';

/** Pages that are walkthroughs. */
export const WALKTHROUGHS = [
  'docs/start.md',
  'docs/policy/concurrency.md',
  'docs/policy/plans.md',
  'docs/policy/priorities.md',
  'docs/policy/soft-limits.md',
  'docs/policy/spill.md',
  'docs/operate/at-three-in-the-morning.md',
  'docs/operate/replay.md',
  'docs/operate/troubleshooting.md',
  'docs/without-envoy.md',
];

/** The Go program of docs/without-envoy.md. It is built once, because each run of the page cannot compile it. */
export const GO_SOURCE = 'test/conformance/interop/grpc-go/ask/ask.go';

/** Returns the path of the compiled program, if it could be built. */
function goProgram(): string | undefined {
  const client = optionalToolPath('grpc-go-client');
  if (client === undefined) return undefined;
  const path = join(dirname(realpathSync(client)), 'ask');
  return existsSync(path) ? path : undefined;
}

/** Returns whether the programs that a page needs are available. `npm test` lists those that are not. */
export function hasWalkthrough(page: string): boolean {
  const tools = page === 'docs/without-envoy.md' ? [optionalToolPath('python-grpc'), goProgram()] : [];
  return [optionalToolPath('curl'), optionalToolPath('grpcurl'), ...tools].every(
    (tool) => tool !== undefined,
  );
}

/** Ports that the pages name. A run replaces them with free ports. */
const PORTS = ['8081', '8080', '6070', '10000', '9901', '9090'] as const;
/** Programs that keep running, by the beginning of their commands (without settings). */
const PROGRAMS = {
  weir: /^(?:npm start|weir serve)/,
  envoy: /^npm run -s envoy --/,
  upstream: /^npm run -s upstream --/,
} as const;
type Program = keyof typeof PROGRAMS;

/** Matches the instruction to stop one of these programs. */
/** The progress that `weir check` prints after two seconds, on a slow machine. */
const PROGRESS = /^weir check: \d+ of \d+ calls done\n/gm;
const STOP = /^# Ctrl-C in the terminal of (weir|envoy|upstream)$/;

/** A step of a page: a file to write, or a command. */
export type Step = { readonly file: string; readonly text: string } | PageCommand;

/** Returns the steps of a page in order. */
export function stepsOf(page: string, text: string): Step[] {
  const lines = text.split('\n');
  const steps: Step[] = [];
  for (let at = 0; at < lines.length; at++) {
    const language = /^```(\w+)$/.exec(lines[at] as string)?.[1];
    if (language === undefined) continue;
    const end = lines.indexOf('```', at + 1);
    const block = lines.slice(at + 1, end);
    const file = /^(?:#|\/\/) file: (\S+)$/.exec(block[0] ?? '')?.[1];
    if (file !== undefined) steps.push({ file, text: `${block.slice(1).join('\n')}\n` });
    else if (language === 'console') steps.push(...commandsOf(page, block, at + 1));
    at = end;
  }
  return steps;
}

/** Replaces the parts of a log line that differ in each run: times and the digest of the policy. */
const withoutTimes = (line: string) =>
  line.replace(/^\[[\d:.]+\] /, '').replace(/"policy":"[0-9a-f]{12}"/, '"policy":"-"');

/** Runs the steps of a page. */
export class Walkthrough {
  readonly #folder = new TempDir();
  readonly #running = new Map<Program, StartedProcess>();
  readonly #ports: ReadonlyMap<string, string>;
  readonly #tokens = new HoldTokens();
  readonly #bin: string;

  private constructor(ports: ReadonlyMap<string, string>) {
    this.#ports = ports;
    this.#bin = copyImagePrograms(this.#folder.path);
    for (const tool of ['curl', 'grpcurl']) symlinkSync(toolPath(tool), join(this.#bin, tool));
    // The wrapper of Python with grpcio looks for python3 itself.
    this.#standIn('python3', `PATH='${process.env['PATH']}' exec '${optionalToolPath('python-grpc')}' "$@"`);
    this.#standIn('go', `[ "$1 $2" = 'run ask.go' ] && shift 2 && exec '${goProgram()}' "$@"`);
    mkdirSync(this.#folder.join('work'));
    for (const name of ['.ci', 'build', 'deploy', 'proto', 'node_modules'])
      symlinkSync(join(repositoryRoot, name), this.#folder.join(`work/${name}`));
  }

  /** Creates a walkthrough on free ports. */
  static async begin(): Promise<Walkthrough> {
    const free = await freePorts(PORTS.length);
    return new Walkthrough(new Map(PORTS.map((port, at) => [port, String(free[at])])));
  }

  #standIn(name: string, script: string): void {
    const path = join(this.#bin, name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
  }

  /** Stops the running programs and removes the folder. */
  async end(): Promise<void> {
    for (const program of [...this.#running.keys()].reverse()) await this.#stop(program);
    this.#folder.remove();
  }

  /**
   * Runs one step. Resolves with its output, in which the ports and times of the page replace the real ones. For a
   * program that keeps running, the output is limited to the lines that the page shows.
   */
  async take(step: Step): Promise<readonly string[]> {
    if ('file' in step) {
      await this.#write(step.file, step.text);
      return [];
    }
    const stopped = STOP.exec(step.text)?.[1];
    if (stopped !== undefined) {
      await this.#stop(stopped as Program);
      return [];
    }
    const program = this.#programOf(step.text);
    if (program !== undefined) return this.#start(program, step);
    const { stdout } = await runToEnd('sh', ['-c', `exec 2>&1\n${this.#here(step.text)}`], this.#place());
    const printed = this.#there(stdout.replaceAll('\r', '').replace(PROGRESS, '').replace(/\n+$/, ''));
    this.#tokens.note(step.answer, printed);
    return printed === '' ? [] : withShown(step.answer, printed);
  }

  #place() {
    // Commands expect the debug port at its default address.
    const DEBUG_PORT = this.#ports.get('6070') ?? '';
    return {
      cwd: this.#folder.join('work'),
      bareEnvironment: true,
      env: {
        ...FIXED_CLOCK,
        // `node` is the Node.js of the test, which is new enough for weir.
        PATH: [this.#bin, dirname(process.execPath), process.env['PATH']].join(delimiter),
        DEBUG_PORT,
      },
    };
  }

  #programOf(text: string): Program | undefined {
    const command = text.replace(/^(?:\w+=\S+ )+/, '');
    return (Object.keys(PROGRAMS) as Program[]).find((name) => PROGRAMS[name].test(command));
  }

  /** Replaces the ports of the page with the ports of this run, and back. */
  #here(text: string): string {
    const own = this.#tokens.inCommand(text);
    return own.replaceAll(/\b\d{4,5}\b/g, (port) => this.#ports.get(port) ?? port);
  }
  #there(text: string): string {
    const back = new Map([...this.#ports].map(([shown, taken]) => [taken, shown]));
    return text.replaceAll(/\b\d{4,5}\b/g, (port) => back.get(port) ?? port);
  }

  async #write(path: string, text: string): Promise<void> {
    const weir = this.#running.get('weir');
    const before = weir?.lines().length ?? 0;
    const full = this.#folder.join(`work/${path}`);
    const isNew = !existsSync(full);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, this.#here(text));
    if (isNew || weir === undefined) return;
    await waitFor(
      'the reload',
      () =>
        weir
          .lines()
          .slice(before)
          .some((line) => /policy reloaded|the policy on disk is invalid/.test(line)) || undefined,
    );
  }

  async #start(program: Program, step: PageCommand): Promise<readonly string[]> {
    await this.#stop(program);
    const text = this.#here(step.text)
      .replace('npm start', 'weir serve')
      .replace('npm run -s upstream --', 'node build/deploy/demo/echo-upstream.js')
      .replace('npm run -s envoy --', `'${toolPath('envoy')}' --concurrency 1 --disable-hot-restart`)
      .replace(/-c (\S+)/, (_, path: string) => `-c ${this.#forTests(path)}`);
    const port = (shown: string) => this.#ports.get(shown) ?? '';
    const place = this.#place();
    const env = {
      ...place.env,
      GRPC_PORT: port('8081'),
      PORT: port('8080'),
      LOG_FORMAT: 'text',
    };
    const assigned = /^(?:\w+=\S+ )+/.exec(text)?.[0] ?? '';
    const started = startProcess('sh', ['-c', `${assigned}exec ${text.slice(assigned.length)}`], {
      ...place,
      env: program === 'weir' ? env : place.env,
    });
    this.#running.set(program, started);
    const shown = () => started.lines().map((line) => this.#there(line));
    const missing = () =>
      step.answer.filter((line) => !shown().map(withoutTimes).includes(withoutTimes(line)));
    if (program === 'envoy') await this.#untilEnvoyListens(started);
    if (program === 'weir') await this.#untilItSays(started, /weir serves/);
    await waitFor(
      `the lines of ${step.text}`,
      () => missing().length === 0 || !started.isRunning() || undefined,
    ).catch(() => undefined);
    return missing().length === 0 && started.isRunning() ? step.answer : shown();
  }

  /** Copies a file for Envoy, with the ports of this run and long timeouts. Returns the path of the copy. */
  #forTests(path: string): string {
    const copy = this.#folder.join('envoy.yaml');
    let text = this.#here(readFileSync(this.#folder.join(`work/${path}`), 'utf8'));
    for (const [from, to] of LONG_TIMEOUTS) text = text.replaceAll(from, to);
    writeFileSync(copy, text);
    return copy;
  }

  async #untilItSays(started: StartedProcess, text: RegExp): Promise<void> {
    await waitFor(
      `${text} in the log`,
      () => !started.isRunning() || started.lines().some((line) => text.test(line)) || undefined,
    );
  }

  /** Waits until Envoy listens. Not every Envoy of a page has an admin port, so this sends a request. */
  async #untilEnvoyListens(started: StartedProcess): Promise<void> {
    await waitFor('Envoy to listen', async () => {
      if (!started.isRunning()) return true;
      const answer = await httpRequest(Number(this.#ports.get('10000')), '/').catch(() => undefined);
      return answer?.status === 200 || undefined;
    });
  }

  async #stop(program: Program): Promise<void> {
    await this.#running.get(program)?.stop('SIGTERM');
    this.#running.delete(program);
  }
}
