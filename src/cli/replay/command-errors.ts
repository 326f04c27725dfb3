import { EXIT, type Io } from '../io.js';

/** Prints the errors of a command, and returns its exit code. */
export class CommandErrors {
  readonly #command: string;
  readonly #io: Pick<Io, 'err'>;

  constructor(command: string, io: Pick<Io, 'err'>) {
    this.#command = command;
    this.#io = io;
  }

  /** For invalid arguments. */
  usage(message: string): number {
    return this.usageText(`weir ${this.#command}: ${message}; see weir ${this.#command} --help\n`);
  }

  /** For invalid arguments, with a complete text. */
  usageText(text: string): number {
    this.#io.err(text);
    return EXIT.USAGE;
  }

  failed(messages: readonly string[]): number {
    for (const message of messages) this.#io.err(`weir ${this.#command}: ${message}\n`);
    return EXIT.FAILED;
  }
}
