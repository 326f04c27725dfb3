import { emitKeypressEvents } from 'node:readline';
import { printable } from '../../printable.js';
import { cutToColumns } from './columns.js';

/** A pressed key. */
export interface Key {
  /** Text that the key types; '' for keys such as arrows. */
  readonly text: string;
  /** Name of the key in node:readline: `up`, `pagedown`, `escape`, `return`, `q`. */
  readonly name: string;
}

/** Signal that ends a screen; `SIGHUP` also if the terminal closes. */
export type EndSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'SIGQUIT';

/** Full-screen view on the terminal. {@link Screen.close} restores the terminal. */
export interface Screen {
  readonly columns: number;
  readonly rows: number;
  /** Resolves when a signal or Ctrl-C ends the screen. */
  readonly ended: Promise<EndSignal>;
  /**
   * Shows the lines that fit on the screen. Control characters in the lines are escaped; only {@link emphasis} adds
   * styling.
   */
  draw(lines: readonly string[]): void;
  close(): void;
}

/** Receives keys and size changes of a screen. */
export interface ScreenListener {
  key(key: Key): void;
  /** Called after the size changed, or if the screen must be redrawn. */
  resized(): void;
}

/** Members of `process` that a screen needs. */
export type ScreenProcess = Pick<
  NodeJS.Process,
  'stdin' | 'stdout' | 'pid' | 'kill' | 'on' | 'removeListener'
>;

const CSI = '\u001b[';
/** Switches to the alternate screen of xterm-compatible terminals, and hides the cursor. */
const ENTER = `${CSI}?1049h${CSI}?25l${CSI}2J`;
const LEAVE = `${CSI}0m${CSI}?25h${CSI}?1049l`;
const END_SIGNALS: readonly EndSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];
/**
 * Delay after SIGTSTP, in milliseconds, before the screen resumes. A process that still runs then was not stopped,
 * because no shell controls its job.
 */
const RESUME_DELAY_MS = 100;
/** Private characters that mark the start and end of reverse video. They are replaced by control sequences. */
const [REVERSE, PLAIN] = ['\ue000', '\ue001'];

/** Marks a line of {@link Screen.draw} for reverse video. */
export function emphasis(line: string): string {
  return REVERSE + line + PLAIN;
}

/**
 * Opens a full-screen view: switches to the alternate screen, reads keys if standard input is a terminal, and handles
 * signals that end or stop the process. The terminal is restored however the process ends, except after SIGKILL.
 */
export function openScreen(process: ScreenProcess, listener: ScreenListener): Screen {
  return new LiveScreen(process, listener);
}

class LiveScreen implements Screen {
  readonly ended: Promise<EndSignal>;
  readonly #process: ScreenProcess;
  readonly #listener: ScreenListener;
  #end: (signal: EndSignal) => void = () => {};
  #isOpen = false;
  #isClosed = false;
  /** Lines on the screen now. */
  #shown: readonly string[] = [];
  #resumeTimer: NodeJS.Timeout | undefined;

  constructor(process: ScreenProcess, listener: ScreenListener) {
    this.#process = process;
    this.#listener = listener;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    const { stdin, stdout } = process;
    for (const signal of END_SIGNALS) process.on(signal, this.#end);
    process.on('SIGTSTP', this.#stopped);
    process.on('SIGCONT', this.#resume);
    process.on('exit', this.#leave);
    process.on('uncaughtExceptionMonitor', this.#leave);
    stdout.on('resize', this.#resized);
    stdout.on('error', this.#gone);
    if (stdin.isTTY) {
      emitKeypressEvents(stdin);
      stdin.on('keypress', this.#pressed);
      stdin.on('end', this.#gone);
      stdin.on('error', this.#gone);
    }
    this.#enter();
  }

  get columns(): number {
    return Math.max(20, this.#process.stdout.columns || 80);
  }

  get rows(): number {
    return Math.max(5, this.#process.stdout.rows || 24);
  }

  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return;
    // The last column stays empty, because terminals differ in where they put the cursor after it.
    const wanted = Array.from({ length: this.rows }, (_, at) => this.#fitting(lines[at] ?? ''));
    const changes = wanted.flatMap((line, at) =>
      line === this.#shown[at] ? [] : [`${CSI}${at + 1};1H${CSI}2K${line}`],
    );
    this.#shown = wanted;
    if (changes.length > 0) this.#process.stdout.write(changes.join(''));
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { stdin, stdout } = this.#process;
    this.#leave();
    clearTimeout(this.#resumeTimer);
    for (const signal of END_SIGNALS) this.#process.removeListener(signal, this.#end);
    this.#process.removeListener('SIGTSTP', this.#stopped);
    this.#process.removeListener('SIGCONT', this.#resume);
    this.#process.removeListener('exit', this.#leave);
    this.#process.removeListener('uncaughtExceptionMonitor', this.#leave);
    stdout.removeListener('resize', this.#resized);
    stdin.removeListener('keypress', this.#pressed);
    stdin.removeListener('end', this.#gone);
    stdin.pause();
  }

  #fitting(line: string): string {
    const isReverse = line.startsWith(REVERSE);
    const text = isReverse ? line.slice(1, -1) : line;
    const cut = cutToColumns(printable(text), this.columns - 1);
    return isReverse ? `${CSI}7m${cut.padEnd(this.columns - 1)}${CSI}0m` : cut;
  }

  #enter(): void {
    if (this.#isOpen || this.#isClosed) return;
    this.#isOpen = true;
    this.#shown = [];
    const { stdin, stdout } = this.#process;
    if (stdin.isTTY) {
      stdin.setRawMode(true);
      stdin.resume();
    }
    stdout.write(ENTER);
  }

  readonly #leave = (): void => {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const { stdin, stdout } = this.#process;
    if (stdin.isTTY) stdin.setRawMode(false);
    stdout.write(LEAVE);
  };

  readonly #gone = (): void => this.#end('SIGHUP');

  readonly #resized = (): void => {
    // Terminals handle the old content differently after a resize, so the screen is cleared and redrawn.
    this.#shown = [];
    if (this.#isOpen) this.#process.stdout.write(`${CSI}2J`);
    this.#listener.resized();
  };

  readonly #stopped = (): void => this.#suspend(this.#process.pid);

  /**
   * Restores the terminal and stops the process `pid`, or with 0 its whole job, as Ctrl-Z does in a shell. The handler
   * is removed first, so that the default action of SIGTSTP applies. If no shell controls the job, the process
   * continues, and a timer resumes the screen.
   */
  #suspend(pid: number): void {
    this.#leave();
    this.#process.removeListener('SIGTSTP', this.#stopped);
    this.#process.kill(pid, 'SIGTSTP');
    clearTimeout(this.#resumeTimer);
    this.#resumeTimer = setTimeout(this.#resume, RESUME_DELAY_MS);
  }

  readonly #resume = (): void => {
    clearTimeout(this.#resumeTimer);
    if (this.#isClosed) return;
    this.#process.removeListener('SIGTSTP', this.#stopped);
    this.#process.on('SIGTSTP', this.#stopped);
    // After SIGSTOP, which cannot be handled, the state of the terminal is unknown.
    if (this.#isOpen) this.#leave();
    this.#enter();
    this.#listener.resized();
  };

  readonly #pressed = (text: string | undefined, key: { name?: string; ctrl?: boolean }): void => {
    if (key.ctrl === true) {
      if (key.name === 'c') this.#end('SIGINT');
      else if (key.name === 'z') this.#suspend(0);
      else if (key.name === 'l') this.#resized();
      return;
    }
    const typed = text !== undefined && /^[^\p{Cc}\p{Co}]+$/u.test(text) ? text : '';
    this.#listener.key({ text: typed, name: key.name ?? '' });
  };
}
