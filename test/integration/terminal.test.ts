/* Tests that full-screen commands restore the terminal, however they end. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { runToEnd } from '../support/process/processes.js';
import { type PtyScript, startInPty } from '../support/process/pty.js';
import { TempDir } from '../support/process/temp-dir.js';
import { waitFor } from '../support/process/wait-for.js';
import { type FakeDebugPort, startFakeDebugPort } from '../support/weir/fake-debug-port.js';
import { WEIR_MAIN } from '../support/weir/weir.js';
import { isAlive } from '../support/weir/workers.js';

const [ENTER, LEAVE] = ['\u001b[?1049h', '\u001b[?1049l'];
const [HIDE, SHOW] = ['\u001b[?25l', '\u001b[?25h'];

const folder = new TempDir();
let port: FakeDebugPort;
let crash: string;
beforeAll(async () => {
  port = await startFakeDebugPort();
  port.answer = ({ path }) => ({
    body:
      path === '/top'
        ? {
            of: 'minute',
            by: 'denied',
            covers: 60,
            error: { denied: 0, used: 0 },
            sampled: 1,
            top: [
              {
                domain: 'd',
                rule: 'tenant',
                entries: [{ key: 'tenant', value: 'acme' }],
                denied: 7,
                denied_error: 0,
                used: 9,
                used_error: 0,
                used_ratio: 1,
              },
            ],
          }
        : {
            action: 'blocks',
            dry_run: false,
            domain: null,
            entries: [],
            meets: 'none',
            store: 'memory',
            buckets: [],
            more: 0,
            controls: [],
            more_controls: 0,
            notes: [],
          },
  });
  crash = folder.write(
    'crash.cjs',
    "process.on('SIGUSR2', () => { throw new Error('crashed on purpose'); });",
  );
});
afterAll(async () => {
  folder.remove();
  await port.close();
});

/**
 * Returns a script that runs a command of weir in a terminal, and prints its pid, its exit code and the final modes of
 * the terminal.
 */
function inTerminal(command: string): PtyScript {
  const weir = `"${process.execPath}" "${WEIR_MAIN}" ${command} --address ${port.address}`;
  const modes = 'echo "modes $(stty -g)"';
  return startInPty(`${modes}; sh -c 'echo pid=$$; exec ${weir}'; echo "code $?"; ${modes}`);
}

function pidOf(script: PtyScript): number {
  return Number(/pid=(\d+)/.exec(script.output())?.[1]);
}

/** Expects that the modes, the cursor and the visible screen of the terminal are restored. */
function expectAsBefore(script: PtyScript): void {
  const text = script.output();
  const modes = [...text.matchAll(/modes (\S+)/g)].map(([, mode]) => mode);
  expect(modes).toHaveLength(2);
  expect(modes[1]).toBe(modes[0]);
  expect(text.lastIndexOf(LEAVE)).toBeGreaterThan(text.lastIndexOf(ENTER));
  expect(text.lastIndexOf(SHOW)).toBeGreaterThan(text.lastIndexOf(HIDE));
  expect(text.split(ENTER)).toHaveLength(text.split(LEAVE).length);
}

/** Returns the text without control sequences, as a terminal shows it. */
function withoutCodes(text: string): string {
  const [first = '', ...others] = text.split('\u001b[');
  return first + others.map((part) => part.replace(/^[\d;?]*\w/, '')).join('');
}

const ROW = /\b7 +9 +100% {2}tenant {2}tenant=acme/;

describe('the terminal is restored', () => {
  test.each<[how: string, keys: string, code: number]>([
    ['q', 'q', 0],
    ['Ctrl-C', '\u0003', 130],
  ])('after %s', async (_how, keys, code) => {
    const script = inTerminal('top');
    await script.until(ROW);
    script.type(keys);
    await script.ended;
    expect(script.output()).toContain(`code ${code}`);
    expectAsBefore(script);
  });

  test.each<[signal: NodeJS.Signals, code: number]>([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
    ['SIGQUIT', 131],
  ])('after %s', async (signal, code) => {
    const script = inTerminal('bucket blocks --watch');
    await script.until('no callers are blocked');
    process.kill(pidOf(script), signal);
    await script.ended;
    expect(script.output()).toContain(`code ${code}`);
    // The last screen stays visible.
    expect(script.output().split(LEAVE)[1]).toContain('no callers are blocked');
    expectAsBefore(script);
  });

  test('after a crash, and the reason is printed below', async () => {
    const script = startInPty(
      `echo "modes $(stty -g)"; sh -c 'echo pid=$$; exec "${process.execPath}" -r "${crash}" "${WEIR_MAIN}" top ` +
        `--address ${port.address}'; echo "modes $(stty -g)"`,
    );
    await script.until(ROW);
    process.kill(pidOf(script), 'SIGUSR2');
    await script.ended;
    expect(script.output().split(LEAVE)[1]).toContain('crashed on purpose');
    expectAsBefore(script);
  });

  test('while Ctrl-Z stops the job, and the screen is redrawn afterwards', async () => {
    const weir = `"${process.execPath}" "${WEIR_MAIN}" top --address ${port.address}`;
    const script = startInPty(
      `set -m; echo "modes $(stty -g)"; ${weir}; echo "stopped $?"; echo "modes $(stty -g)"; fg; echo "code $?"`,
    );
    await script.until(ROW);
    script.type('\u001a');
    await script.until(ROW, 2);
    expect(script.output()).toMatch(/stopped 148/);
    script.type('q');
    await script.ended;
    expect(script.output()).toContain('code 0');
    expectAsBefore(script);
  });

  test('after a stop that no shell could undo, which is ignored', async () => {
    const script = inTerminal('top');
    await script.until(ROW);
    process.kill(pidOf(script), 'SIGTSTP');
    await script.until(ROW, 2);
    script.type('q');
    await script.ended;
    expect(script.output()).toContain('code 0');
    expectAsBefore(script);
  });
});

test('the end of the terminal ends the command that ran in it', async () => {
  const script = inTerminal('top');
  await script.until(ROW);
  const pid = pidOf(script);
  script.hangUp();
  await waitFor('weir top to end', () => (isAlive(pid) ? undefined : true));
});

test('a new size is drawn immediately, and no line is wider', async () => {
  const script = startInPty(
    `echo "tty=$(tty)"; "${process.execPath}" "${WEIR_MAIN}" top --every 1h --address ${port.address}; echo "code $?"`,
  );
  await script.until(ROW);
  // This is the last line of a screen.
  await script.until('q quit');
  const tty = /tty=(\S+)/.exec(script.output())?.[1] ?? '';
  // stty changes rows and columns one after the other, even if it gets both.
  await runToEnd('stty', ['-F', tty, 'rows', '10']);
  await script.until('q quit', 2);
  const before = script.output().length;
  await runToEnd('stty', ['-F', tty, 'cols', '50']);
  await script.until('q qu…');
  const [, ...lines] = script.output().slice(before).split('\u001b[2K');
  expect(lines).toHaveLength(10);
  expect(lines.filter((line) => withoutCodes(line).length > 49)).toEqual([]);
  script.type('/ac\r');
  await script.until(/\/ac {3}s sort/);
  script.type('q');
  await script.ended;
  expect(script.output()).toContain('code 0');
});

test.each(['xterm', 'dumb'])(
  'prints once without a terminal, or with one that cannot be drawn on',
  async (term) => {
    const script = startInPty(
      `"${process.execPath}" "${WEIR_MAIN}" top --address ${port.address}${term === 'xterm' ? ' | cat' : ''}`,
      { TERM: term },
    );
    await script.ended;
    expect(script.output()).toMatch(/ 7 +9 +100%/);
    expect(script.output()).not.toContain('\u001b');
  },
);
