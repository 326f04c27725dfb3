import type { BucketAnswer } from '../../admin/buckets/messages.js';
import { printableJson } from '../../printable.js';
import { quantity } from '../../quantity.js';
import type { DebugResult } from '../call/debug-call.js';
import { EXIT, type Io } from '../io.js';
import { canRedraw, screenCode, timeOfDay } from '../screen/live.js';
import { type EndSignal, emphasis } from '../screen/live-screen.js';
import type { BucketOptions } from './bucket-options.js';
import { bucketLines } from './bucket-report.js';

/** The debug port that is called again and again. */
export interface WatchedServer {
  /** URL of the debug port. */
  readonly name: string;
  ask(): Promise<DebugResult<BucketAnswer>>;
}

/**
 * Repeats the request until the user quits. On a terminal, shows each answer on the full screen, and prints the last
 * one at the end. With `--json` or without a terminal, prints all answers. Resolves with the exit code.
 */
export function watchBuckets(
  first: BucketAnswer,
  server: WatchedServer,
  options: BucketOptions,
  io: Io,
): Promise<number> {
  return canRedraw(io) && !options.json
    ? watchOnScreen(first, server, options, io)
    : watchInLines(first, server, options, io);
}

async function watchInLines(
  first: BucketAnswer,
  server: WatchedServer,
  options: BucketOptions,
  io: Io,
): Promise<number> {
  const { json, watchMs = 0, question } = options;
  let result: DebugResult<BucketAnswer> = { ok: true, answer: first };
  while (io.isRead()) {
    if (!result.ok) io.err(`weir bucket ${question.action}: ${result.sentence}\n`);
    else if (json) io.out(`${printableJson(result.answer)}\n`);
    else io.out(`${timeOfDay()}\n${bucketLines(result.answer, server.name).join('\n')}\n\n`);
    await new Promise((resolve) => setTimeout(resolve, watchMs));
    result = await server.ask();
  }
  return EXIT.OK;
}

async function watchOnScreen(
  first: BucketAnswer,
  server: WatchedServer,
  options: BucketOptions,
  io: Io,
): Promise<number> {
  const { watchMs = 0, question } = options;
  let [answer, failure, at] = [first, '', timeOfDay()];
  let quit: (signal?: EndSignal) => void = () => {};
  const hasQuit = new Promise<EndSignal | undefined>((resolve) => {
    quit = resolve;
  });
  const screen = await io.openScreen({
    key: ({ text, name }) => {
      if (text === 'q' || name === 'escape') quit();
    },
    resized: () => draw(),
  });
  const draw = (): void => {
    const failed = failure === '' ? [] : [`no answer since the time above: ${failure}`];
    const head = `weir bucket ${question.action}, every ${watchMs / 1000} s   ${at}   q or Ctrl-C quits`;
    screen.draw(
      fitToRows(
        [emphasis(head), ...failed, '', ...bucketLines(answer, server.name, screen.columns - 1)],
        screen.rows,
      ),
    );
  };
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const refresh = async (): Promise<void> => {
    const result = await server.ask();
    if (result.ok) [answer, failure, at] = [result.answer, '', timeOfDay()];
    else failure = result.sentence;
    if (isOver) return;
    draw();
    next();
  };
  const next = (): void => {
    timer = setTimeout(() => void refresh(), watchMs);
  };
  try {
    draw();
    next();
    const signal = await Promise.race([hasQuit, screen.ended]);
    return screenCode(signal);
  } finally {
    isOver = true;
    clearTimeout(timer);
    screen.close();
    io.out(`${at}\n${bucketLines(answer, server.name).join('\n')}\n`);
  }
}

/** Returns the lines that fit on a screen, and the number of the omitted lines. */
function fitToRows(lines: readonly string[], rows: number): readonly string[] {
  if (lines.length <= rows) return lines;
  const shown = lines.slice(0, rows - 1);
  return [...shown, `… ${quantity(lines.length - shown.length, 'more line')} not shown`];
}
