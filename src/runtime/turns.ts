/** Resolves when the event loop has had a turn: what waits there goes first. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Runs work to its end. */
export function atOnce<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Runs work, with a {@link turn} wherever it yields. */
export async function inTurns<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    await turn();
  }
}

/** What `promise` comes to, or what `late` gives, or throws, after `ms`. */
export async function within<Result, Late>(
  ms: number,
  promise: Result | PromiseLike<Result>,
  late: () => Late,
): Promise<Result | Late> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    return await Promise.race([promise, over.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}
