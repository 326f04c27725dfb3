// Helpers for the scripts of this folder: the path of the repository, commands, and messages.
import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
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

/**
 * Yields the files below `folder`, as paths from `top`. Does not follow links. The recursion of readdir follows them in
 * Node.js 24, but not in Node.js 20.
 */
export function* filesBelow(folder, top = root) {
  for (const entry of readdirSync(join(top, folder), { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* filesBelow(path, top);
    else if (entry.isFile()) yield path;
  }
}

/** Returns whether the module at `url` is the main program, and not imported. Its path may contain links. */
export function isProgram(url) {
  const program = process.argv[1];
  return program !== undefined && existsSync(program) && realpathSync(program) === fileURLToPath(url);
}

/** Returns a count with its noun: `1 finding`, `2 findings`. */
export function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Prints a line to stderr, so that stdout contains only the requested output. */
export function say(text) {
  process.stderr.write(`weir: ${text}\n`);
}

/** An expected failure. The caller prints its message without a stack. */
export class Impossible extends Error {}

/** Calls `end` before Ctrl-C ends this process. Returns a function that removes the handler. */
function beforeInterrupt(end) {
  const listener = () => {
    end();
    process.kill(process.pid, 'SIGINT'); // no listener is left, so the signal ends the process
  };
  process.once('SIGINT', listener);
  return () => process.off('SIGINT', listener);
}

/**
 * Runs a command and resolves with {code, output}. `show: true` passes its output to stderr; otherwise stdout and
 * stderr are collected together. `interruptible: true` kills the command on Ctrl-C, for commands such as npm that would
 * continue for a while. Rejects with {@link Impossible} if the command does not exist.
 */
export function run(
  command,
  args,
  { cwd = root, env = process.env, show = false, interruptible = false } = {},
) {
  return new Promise((resolve, reject) => {
    // Registered before the child starts, so that no signal is missed.
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

/** Runs a command like {@link run}, but rejects with {@link Impossible} and the last lines of output if it fails. */
export async function must(what, command, args, options) {
  const { code, output } = await run(command, args, options);
  if (code === 0) return output;
  const tail = output.trim().split('\n').slice(-5).join('\n  ');
  throw new Impossible(
    `${what} failed (${command} exited with code ${code})${tail === '' ? '' : `:\n  ${tail}`}`,
  );
}

/** Contains the process id of the command that prepares this checkout. */
const PREPARING = join(root, '.tools/preparing');
/**
 * Maximum age of the file of a running command, which touches it more often. It also works if process ids differ, as in
 * containers.
 */
const STALE_MS = 10_000;

/** Returns whether the command that created {@link PREPARING} has ended. */
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

/** Runs `body` while no other command installs or builds in this checkout, because its files would be incomplete. */
export async function alone(body) {
  mkdirSync(dirname(PREPARING), { recursive: true });
  let told = false;
  while (!takeTurn()) {
    if (isStale()) rmSync(PREPARING, { force: true });
    else {
      if (!told) say('waiting for another command that installs or builds in this checkout');
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

/** Runs a main function. {@link Impossible} ends the process with its message and exit code 1. */
export async function main(body) {
  try {
    await body();
  } catch (error) {
    say(error instanceof Impossible ? error.message : error.stack);
    process.exitCode = 1;
  }
}
