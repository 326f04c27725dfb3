import type { TopBucket } from '../../admin/buckets/messages.js';
import { printable } from '../../printable.js';
import { wrapped } from '../screen/columns.js';
import { emphasis, type Key } from '../screen/live-screen.js';
import { type TopResult, type TopTarget, targetName } from './ask-top.js';
import { type FullTopQuestion, sortTop } from './merge-top.js';
import { coverText, errorText, hasText, nothingText, topRows } from './top-report.js';

/** Maximum length of the filter in characters. */
const MAX_FILTER = 100;
/** Lines of a screen above the rows, including the heading, and below them. */
const LINES_ABOVE = 4;
const LINES_BELOW = 1;

/** State of the screen of `weir top`. */
export interface TopState {
  readonly question: FullTopQuestion;
  /** Only rows with this text are shown; '' shows all. */
  readonly filter: string;
  /** Filter that the user is typing; undefined otherwise. */
  readonly typing: string | undefined;
  /** Number of rows above the first visible row. */
  readonly offset: number;
  readonly isPaused: boolean;
  readonly showsHelp: boolean;
  /** Last answer, and the time of day when it arrived. */
  readonly asked: TopResult;
  readonly at: string;
}

/** Effect of a key. */
export interface KeyEffect {
  readonly state: TopState;
  readonly quits: boolean;
  /** Whether to send a request immediately. */
  readonly refreshes: boolean;
}

const HELP: readonly string[] = [
  's         change the sort order: denied or used',
  'm, h      show the last minute or the last hour',
  '/         show only rows that contain the text you type',
  'arrows    move by one row; PgUp and PgDn move by one screen',
  'Home, End go to the first or last row',
  'p         pause or resume',
  'r, space  refresh now',
  '?         show or hide this list',
  'q         quit',
];

/** Returns the rows that match the filter, sorted. */
function rowsOf({ asked, filter, question }: TopState): readonly TopBucket[] {
  const top = asked.answer?.top ?? [];
  return sortTop(filter === '' ? top : top.filter((bucket) => hasText(bucket, filter)), question.by);
}

/** Returns the number of bucket rows on a screen with `rows` lines. */
function visibleRows(rows: number): number {
  return Math.max(1, rows - LINES_ABOVE - LINES_BELOW);
}

/** Returns the effect of a key on the state, for a screen with `rows` lines. */
export function press(state: TopState, key: Key, rows: number): KeyEffect {
  if (state.typing !== undefined)
    return { state: typed(state, state.typing, key), quits: false, refreshes: key.name === 'return' };
  const { question } = state;
  switch (key.text) {
    case 'q':
      return { state, quits: true, refreshes: false };
    case 's':
      return withRequest({
        ...state,
        offset: 0,
        question: { ...question, by: question.by === 'denied' ? 'used' : 'denied' },
      });
    case 'm':
      return withRequest({ ...state, offset: 0, question: { ...question, of: 'minute' } });
    case 'h':
      return withRequest({ ...state, offset: 0, question: { ...question, of: 'hour' } });
    case '/':
      return withoutRequest({ ...state, typing: state.filter, showsHelp: false });
    case 'p':
      return { state: { ...state, isPaused: !state.isPaused }, quits: false, refreshes: state.isPaused };
    case 'r':
    case ' ':
      return withRequest(state);
    case '?':
      return withoutRequest({ ...state, showsHelp: !state.showsHelp });
  }
  if (key.name === 'escape') return withoutRequest({ ...state, filter: '', offset: 0, showsHelp: false });
  return withoutRequest(scrolled(state, key.name, rows));
}

function withoutRequest(state: TopState): KeyEffect {
  return { state, quits: false, refreshes: false };
}

function withRequest(state: TopState): KeyEffect {
  return { state, quits: false, refreshes: true };
}

function typed(state: TopState, typing: string, { text, name }: Key): TopState {
  switch (name) {
    case 'return':
    case 'enter':
      return { ...state, filter: typing, typing: undefined, offset: 0 };
    case 'escape':
      return { ...state, typing: undefined };
    case 'backspace':
      return { ...state, typing: Array.from(typing).slice(0, -1).join('') };
    default:
      return typing.length + text.length > MAX_FILTER ? state : { ...state, typing: typing + text };
  }
}

function scrolled(state: TopState, name: string, rows: number): TopState {
  const room = visibleRows(rows);
  const last = Math.max(0, rowsOf(state).length - room);
  const to: Readonly<Record<string, number>> = {
    up: state.offset - 1,
    down: state.offset + 1,
    pageup: state.offset - room,
    pagedown: state.offset + room,
    home: 0,
    end: last,
  };
  return { ...state, offset: Math.min(last, Math.max(0, to[name] ?? state.offset)) };
}

/** Formats the screen as lines. */
export function topScreen(
  state: TopState,
  target: TopTarget,
  { columns, rows }: { readonly columns: number; readonly rows: number },
): readonly string[] {
  const { asked, at, question, isPaused, showsHelp } = state;
  const head = `weir top: ${coverText(question)}   ${targetName(target, asked)}   ${at}`;
  const lines = [head + (isPaused ? '   paused' : ''), stateLine(state), ''];
  if (showsHelp) {
    const problems = asked.problems.flatMap((problem) => [
      '',
      ...wrapped(`! ${printable(problem)}`, columns - 1),
    ]);
    return [...lines, ...HELP, ...problems];
  }
  const all = rowsOf(state);
  const room = visibleRows(rows);
  const offset = Math.min(state.offset, Math.max(0, all.length - room));
  // All rows determine the column widths, so that the columns do not move while the user scrolls.
  const [heading = '', ...table] = topRows(all, columns);
  const seen = table.slice(offset, offset + room);
  if (all.length === 0) seen.push(state.filter === '' ? nothingText(question) : 'no row contains this text');
  const filling = Array.from({ length: Math.max(0, room - seen.length) }, () => '');
  return [...lines, emphasis(heading), ...seen, ...filling, lastLine(state, all.length, offset, seen.length)];
}

/** Returns the second line: the first problem, or the possible error of the numbers. */
function stateLine({ asked }: TopState): string {
  const { answer, problems } = asked;
  const [problem] = problems;
  if (problem === undefined) return answer === undefined ? '' : errorText(answer);
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  return `! ${printable(problem)}${more}`;
}

function lastLine({ typing, filter }: TopState, all: number, offset: number, seen: number): string {
  if (typing !== undefined) return `/${typing}_   Enter applies, Escape cancels`;
  const place = all > seen ? `${offset + 1}-${offset + seen} of ${all}   ` : '';
  const filtered = filter === '' ? '' : `/${filter}   `;
  return `${place}${filtered}s sort  m minute  h hour  / filter  ? help  q quit`;
}
