import { chmodSync, readFileSync } from 'node:fs';
import { basename, delimiter, join } from 'node:path';
import { parse } from 'yaml';
import { type StartedProcess, startProcess } from '../process/processes.js';
import { TempDir } from '../process/temp-dir.js';
import { toolPath } from '../process/tools.js';
import { redisCliScript } from '../redis/redis-cli.js';

/** Fields of a service in a compose file that tests read. */
export interface ComposeService {
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly env_file?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly restart?: string;
}

/** The docker-compose.yaml of a folder. */
export class ComposeFile {
  readonly folder: string;
  readonly services: Readonly<Record<string, ComposeService>>;

  constructor(folder: string) {
    this.folder = folder;
    const file = parse(readFileSync(join(folder, 'docker-compose.yaml'), 'utf8'), { merge: true });
    this.services = (file as { services: Record<string, ComposeService> }).services;
  }

  /** Returns a service. Throws if the file has no service of this name. */
  service(name: string): ComposeService {
    const service = this.services[name];
    if (service === undefined) throw new Error(`no service ${name}`);
    return service;
  }

  /** Returns the text of a file in the same folder. */
  text(name: string): string {
    return readFileSync(join(this.folder, name), 'utf8');
  }

  /** Paths of the files that the compose file mounts or builds from. */
  get paths(): string[] {
    const all = Object.values(this.services);
    const mounts = all.flatMap(({ volumes = [] }) =>
      volumes.filter((volume) => volume.includes(':')).map((volume) => volume.split(':')[0] ?? ''),
    );
    const builds = all.flatMap(({ build }) =>
      build === undefined ? [] : [join(build.context, build.dockerfile)],
    );
    return [...mounts, ...builds].map((path) => join(this.folder, path));
  }

  get publishedPorts(): string[] {
    return Object.values(this.services).flatMap(({ ports = [] }) => ports);
  }
}

/** Services of a compose file that run Redis, as processes on 127.0.0.1. Names of containers become ports. */
export class ComposeProcesses {
  readonly #file: ComposeFile;
  readonly #ports: ReadonlyMap<string, number>;
  readonly #env: Readonly<Record<string, string>>;
  readonly #root = new TempDir();
  readonly #started = new Map<string, StartedProcess>();

  /** `ports` contains the ports of listening services, by name. */
  constructor(file: ComposeFile, ports: ReadonlyMap<string, number>, env: Readonly<Record<string, string>>) {
    this.#file = file;
    this.#ports = ports;
    this.#env = env;
    this.#program('redis-server', `exec '${toolPath('redis-server')}' "$@"`);
    this.#program('redis-cli', redisCliScript());
  }

  portOf(name: string): number {
    return this.#ports.get(name) ?? 0;
  }

  /** Replaces names of containers, with or without ports, by addresses on this machine. */
  here(line: string): string {
    const names = [...this.#ports.keys()].join('|');
    return line
      .replaceAll(new RegExp(`\\b(${names})([ :])\\d+`, 'g'), (_, name: string, between: string) => {
        return `127.0.0.1${between}${this.portOf(name)}`;
      })
      .replaceAll(new RegExp(`\\b(?:${names})\\b`, 'g'), '127.0.0.1');
  }

  /** Starts services, which find what they wrote into /data earlier. */
  start(...names: readonly string[]): void {
    for (const name of names) this.#start(name);
  }

  /** Runs a service that ends by itself. Throws if it fails. */
  async run(name: string): Promise<void> {
    const started = this.#start(name);
    const { code } = await started.exited;
    if (code !== 0) throw new Error(`${name} ended with ${code}:\n${started.lines().join('\n')}`);
  }

  async kill(...names: readonly string[]): Promise<void> {
    await Promise.all(names.map((name) => this.#started.get(name)?.stop('SIGKILL')));
  }

  /** Kills all services. */
  async stop(): Promise<void> {
    await this.kill(...this.#started.keys());
    this.#root.remove();
  }

  #start(name: string): StartedProcess {
    const service = this.#file.service(name);
    const [program = '', ...words] = [...(service.entrypoint ?? []), ...(service.command ?? [])];
    const args = words.map((word) => this.#pathHere(service, name, word));
    // This folder replaces the volume /data, which outlives the process.
    this.#root.write(`${name}/data/.keep`, '');
    const started = startProcess(program, args, {
      bareEnvironment: true,
      env: { ...this.#env, PATH: [this.#root.join('bin'), process.env['PATH']].join(delimiter) },
      cwd: this.#root.join(name, 'data'),
    });
    this.#started.set(name, started);
    return started;
  }

  /**
   * Converts a path in the container to a path on this machine. A configuration file gets the ports of this machine.
   */
  #pathHere(service: ComposeService, name: string, word: string): string {
    const mount = service.volumes?.map((volume) => volume.split(':')).find(([, target]) => target === word);
    if (mount === undefined) return this.here(word);
    const source = join(this.#file.folder, mount[0] ?? '');
    if (!source.endsWith('.conf')) return source;
    const configuration = this.here(readFileSync(source, 'utf8')).replace(
      /^port \d+$/m,
      `port ${this.portOf(name)}`,
    );
    return this.#root.write(`${name}/etc/${basename(source)}`, `${configuration}bind 127.0.0.1\n`);
  }

  #program(name: string, script: string): void {
    const text = script.startsWith('#!') ? script : `#!/bin/sh\n${script}\n`;
    chmodSync(this.#root.write(`bin/${name}`, text), 0o755);
  }
}
