// What the scripts of this folder share: where the repository lies, running a command, saying what is going on.
import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Whether the module at `url` is the program that runs, and not imported by it. Its path may lead through links. */
export function isProgram(url) {
  const program = process.argv[1];
  return program !== undefined && existsSync(program) && realpathSync(program) === fileURLToPath(url);
}

/** One line on stderr, so that stdout stays free for what was asked for. */
export function say(text) {
  process.stderr.write(`weir: ${text}\n`);
}

/** A failure that one sentence explains; the caller prints it without a stack. */
export class Impossible extends Error {}

/** Calls `end` before Ctrl-C ends this process. Returns what undoes it. */
function beforeInterrupt(end) {
  const listener = () => {
    end();
    process.kill(process.pid, 'SIGINT'); // nobody listens any more, so this ends the process
  };
  process.once('SIGINT', listener);
  return () => process.off('SIGINT', listener);
}

/**
 * Runs a command to its end and resolves with {code, output}. `show: true` passes its output on to stderr, otherwise it
 * is collected (stdout and stderr together). `interruptible: true` is for a command such as npm, which goes on for a
 * while after Ctrl-C: it is killed. Rejects with {@link Impossible} if the command does not exist.
 */
export function run(
  command,
  args,
  { cwd = root, env = process.env, show = false, interruptible = false } = {},
) {
  return new Promise((resolve, reject) => {
    // Before the child is there, so that no signal comes in between.
    const undo = interruptible ? beforeInterrupt(() => child.kill('SIGKILL')) : () => {};
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', show ? 2 : 'pipe', show ? 2 : 'pipe'] });
    child.once('close', undo);
    let output = '';
    const collect = (chunk) => {
      output += chunk;
    };
    child.stdout?.on('data', collect);
    child.stderr?.on('data', collect);
    child.once('error', (error) =>
      reject(error.code === 'ENOENT' ? new Impossible(`${command} is not installed`) : error),
    );
    child.once('close', (code, signal) => resolve({ code: code ?? 1, signal, output }));
  });
}

/** As {@link run}, but a failing command is an {@link Impossible} that ends with the command's last lines. */
export async function must(what, command, args, options) {
  const { code, output } = await run(command, args, options);
  if (code === 0) return output;
  const tail = output.trim().split('\n').slice(-5).join('\n  ');
  throw new Impossible(`${what} failed (${command} ended with ${code})${tail === '' ? '' : `:\n  ${tail}`}`);
}

/** Holds the process id of the command that prepares this checkout. */
const PREPARING = join(root, '.tools/preparing');
/** The file is touched more often while that command runs, also where its process id means nothing here. */
const STALE_MS = 10_000;

/** Whether the command that made {@link PREPARING} is gone. */
function isStale() {
  try {
    if (Date.now() - statSync(PREPARING).mtimeMs > STALE_MS) return true;
    process.kill(Number(readFileSync(PREPARING, 'utf8')) || process.pid, 0);
    return false;
  } catch (error) {
    return error.code === 'ESRCH';
  }
}

function takeTurn() {
  try {
    writeFileSync(PREPARING, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    return false;
  }
}

/** Runs `body` while no other command installs or builds in this checkout: what that one makes is half there. */
export async function alone(body) {
  mkdirSync(dirname(PREPARING), { recursive: true });
  let told = false;
  while (!takeTurn()) {
    if (isStale()) rmSync(PREPARING, { force: true });
    else {
      if (!told) say('another command installs or builds here: waiting for it');
      told = true;
      await wait(200);
    }
  }
  const timer = setInterval(
    () => existsSync(PREPARING) && utimesSync(PREPARING, new Date(), new Date()),
    1000,
  );
  try {
    return await body();
  } finally {
    clearInterval(timer);
    rmSync(PREPARING, { force: true });
  }
}

/** Runs a main function; an {@link Impossible} ends the process with its sentence and exit code 1. */
export async function main(body) {
  try {
    await body();
  } catch (error) {
    say(error instanceof Impossible ? error.message : error.stack);
    process.exitCode = 1;
  }
}
