import { emitKeypressEvents } from 'node:readline';
import { printable } from '../../printable.js';
import { cutToColumns } from './columns.js';

/** A key that was pressed. */
export interface Key {
  /** What it typed; '' for one that types nothing. */
  readonly text: string;
  /** As node:readline calls it: `up`, `pagedown`, `escape`, `return`, `q`. */
  readonly name: string;
}

/** A signal that ended a screen; `SIGHUP` also where the terminal is gone. */
export type EndSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP' | 'SIGQUIT';

/** The whole terminal, to be drawn on again and again. {@link Screen.close} gives it back as it was. */
export interface Screen {
  readonly columns: number;
  readonly rows: number;
  /** Resolves when a signal asks for the end, or Ctrl-C. */
  readonly ended: Promise<EndSignal>;
  /** Shows these lines, as far as there is room. Only {@link emphasis} steers the terminal, whatever the lines hold. */
  draw(lines: readonly string[]): void;
  close(): void;
}

/** What a screen tells of. */
export interface ScreenListener {
  key(key: Key): void;
  /** The size is another one, or all must be drawn anew. */
  resized(): void;
}

/** The part of a process that a screen needs. */
export type ScreenProcess = Pick<
  NodeJS.Process,
  'stdin' | 'stdout' | 'pid' | 'kill' | 'on' | 'removeListener'
>;

const CSI = '\u001b[';
/** The alternate screen of xterm and its kin, without the cursor. */
const ENTER = `${CSI}?1049h${CSI}?25l${CSI}2J`;
const LEAVE = `${CSI}0m${CSI}?25h${CSI}?1049l`;
const END_SIGNALS: readonly EndSignal[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];
/** A process that was to stop and goes on after so long was not stopped: it has no shell that could wake it. */
const NOT_STOPPED_MS = 100;
/** Beginning and end of what is drawn in reverse. They stand for a code, and take no column. */
const [REVERSE, PLAIN] = ['\ue000', '\ue001'];

/** A whole line of {@link Screen.draw} that is drawn in reverse. */
export function emphasis(line: string): string {
  return REVERSE + line + PLAIN;
}

/**
 * Takes the terminal of a process: the alternate screen, the keyboard if standard input is one, and the signals that
 * end and stop. However the process ends, but for SIGKILL, the terminal is given back.
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
  /** What stands there, line by line. */
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
    // The last column stays free: terminals differ in where the cursor is behind it.
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
    // What terminals do to what is on them is up to them.
    this.#shown = [];
    if (this.#isOpen) this.#process.stdout.write(`${CSI}2J`);
    this.#listener.resized();
  };

  readonly #stopped = (): void => this.#suspend(this.#process.pid);

  /**
   * Stops a process as a shell expects it, with the terminal as it was; 0: all of the job, as Ctrl-Z does. The default
   * action of the signal goes on at once where no shell could wake us.
   */
  #suspend(pid: number): void {
    this.#leave();
    this.#process.removeListener('SIGTSTP', this.#stopped);
    this.#process.kill(pid, 'SIGTSTP');
    clearTimeout(this.#resumeTimer);
    this.#resumeTimer = setTimeout(this.#resume, NOT_STOPPED_MS);
  }

  readonly #resume = (): void => {
    clearTimeout(this.#resumeTimer);
    if (this.#isClosed) return;
    this.#process.removeListener('SIGTSTP', this.#stopped);
    this.#process.on('SIGTSTP', this.#stopped);
    // Woken without a stop that was seen (SIGSTOP): the terminal may be in any state.
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
