import { printableJson } from '../../printable.js';
import {
  type DebugAccess,
  debugName,
  type Found,
  readDebugAccess,
  readDebugTarget,
  sendsTokenInClear,
} from '../call/debug-server.js';
import { EXIT, type Io } from '../io.js';
import { canRedraw, screenCode, timeOfDay } from '../screen/live.js';
import type { EndSignal } from '../screen/live-screen.js';
import { askTop, MAX_TOP_ROWS, type TopResult, type TopTarget, targetName } from './ask-top.js';
import { readReplicas } from './replicas.js';
import { readTopOptions, type TopOptions } from './top-options.js';
import { plainTop } from './top-report.js';
import { press, type TopState, topScreen } from './top-state.js';

/**
 * Runs `weir top`. Without the live view, resolves with exit code 0 if every server answered. The live view ends with 0
 * if the user quits, and with the code of the signal otherwise.
 */
export async function runTop(args: readonly string[], io: Io): Promise<number> {
  const options = readTopOptions(args, canRedraw(io));
  if (typeof options === 'string') {
    io.err(options);
    return EXIT.USAGE;
  }
  const read = readTargetAndAccess(options, io.environment);
  if (read.kind !== 'found') {
    for (const message of read.kind === 'usage' ? [read.message] : read.messages) {
      io.err(`weir top: ${message}\n`);
    }
    return read.kind === 'usage' ? EXIT.USAGE : EXIT.FAILED;
  }
  const { target, access } = read.found;
  const servers = target.kind === 'one' ? [target.server] : target.list.map(({ server }) => server);
  const clear = servers.find((server) => sendsTokenInClear(server, access));
  if (clear !== undefined) {
    io.err(
      `weir top: the token is sent to ${debugName(clear)} in plain text; use https:// to protect the token\n`,
    );
  }
  const first = await askTop(target, access, options.question);
  if (options.once || first.answer === undefined) return printTop(first, target, options, io);
  return new LiveTop(first, target, access, options).run(io);
}

interface TargetAndAccess {
  readonly target: TopTarget;
  readonly access: DebugAccess;
}

function readTargetAndAccess(options: TopOptions, environment: Io['environment']): Found<TargetAndAccess> {
  const access = readDebugAccess(options.target, environment);
  if (access.kind !== 'found') return access;
  if (options.all !== undefined) {
    const list = readReplicas(options.all, options.target['tls-ca'] !== undefined);
    if (typeof list === 'string') return { kind: 'usage', message: list };
    return { kind: 'found', found: { target: { kind: 'all', list }, access: access.found } };
  }
  const server = readDebugTarget(options.target, environment);
  if (server.kind !== 'found') return server;
  return {
    kind: 'found',
    found: { target: { kind: 'one', server: server.found }, access: access.found },
  };
}

function printTop(asked: TopResult, target: TopTarget, options: TopOptions, io: Io): number {
  const { answer, answered, problems } = asked;
  if (answer !== undefined && options.json) {
    const all = target.kind === 'all' ? { ...answer, replicas: { answered, problems } } : answer;
    io.out(`${printableJson(all, 2)}\n`);
  } else if (answer !== undefined) {
    io.out(`${plainTop(answer, targetName(target, asked)).join('\n')}\n`);
  }
  for (const problem of problems) io.err(`weir top: ${problem}\n`);
  return answer === undefined || problems.length > 0 ? EXIT.FAILED : EXIT.OK;
}

/** Live table on the full terminal screen. */
class LiveTop {
  readonly #target: TopTarget;
  readonly #access: DebugAccess;
  readonly #everyMs: number;
  #state: TopState;
  #timer: NodeJS.Timeout | undefined;
  #isAsking = false;
  /** Whether to send another request immediately after the current one. */
  #refreshesAgain = false;
  #isOver = false;
  #draw: () => void = () => {};

  constructor(asked: TopResult, target: TopTarget, access: DebugAccess, options: TopOptions) {
    this.#target = target;
    this.#access = access;
    this.#everyMs = options.everyMs;
    this.#state = {
      question: options.question,
      filter: '',
      typing: undefined,
      offset: 0,
      isPaused: false,
      showsHelp: false,
      asked,
      at: timeOfDay(),
    };
  }

  /** Shows the table until the user quits or a signal arrives. Resolves with the exit code. */
  async run(io: Io): Promise<number> {
    let quit: (signal?: EndSignal) => void = () => {};
    const hasQuit = new Promise<EndSignal | undefined>((resolve) => {
      quit = resolve;
    });
    const screen = await io.openScreen({
      key: (key) => {
        const pressed = press(this.#state, key, screen.rows);
        this.#state = pressed.state;
        if (pressed.quits) quit();
        else if (pressed.refreshes) void this.#ask();
        this.#draw();
      },
      resized: () => this.#draw(),
    });
    this.#draw = () => screen.draw(topScreen(this.#state, this.#target, screen));
    try {
      this.#draw();
      this.#wait();
      return screenCode(await Promise.race([hasQuit, screen.ended]));
    } finally {
      this.#isOver = true;
      clearTimeout(this.#timer);
      screen.close();
    }
  }

  #wait(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (this.#state.isPaused) this.#wait();
      else void this.#ask();
    }, this.#everyMs);
  }

  /** Requests a new answer, after the current request if there is one. */
  async #ask(): Promise<void> {
    if (this.#isAsking) {
      this.#refreshesAgain = true;
      return;
    }
    this.#isAsking = true;
    do {
      this.#refreshesAgain = false;
      const { question, filter } = this.#state;
      // The filter can match rows below the usual limit, so all rows are requested.
      const wanted = filter === '' ? question : { ...question, limit: MAX_TOP_ROWS };
      const asked = await askTop(this.#target, this.#access, wanted);
      if (this.#isOver) return;
      // If no server answers, the last answer stays on the screen, with the new problems.
      this.#state =
        asked.answer === undefined
          ? { ...this.#state, asked: { ...asked, answer: this.#state.asked.answer } }
          : { ...this.#state, asked, at: timeOfDay() };
      this.#draw();
    } while (this.#refreshesAgain);
    this.#isAsking = false;
    this.#wait();
  }
}
