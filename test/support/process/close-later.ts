/** What a program outside of jest has opened. */
const opened: (() => unknown)[] = [];
const { weirTestCloses = (close) => opened.push(close) } = globalThis as {
  readonly weirTestCloses?: (close: () => unknown) => unknown;
};

/**
 * Closes something when the test that opens it ends, or, if a hook `beforeAll` or the file itself opens it, when the
 * `describe` block or the file ends. The latest is closed first (.ci/test-environment.cjs). Outside of jest, {@link
 * closeAll} closes it.
 */
export function closeLater<Opened>(one: Opened, close: (one: Opened) => unknown): Opened {
  weirTestCloses(() => close(one));
  return one;
}

/** Closes what a program outside of jest has opened, the latest first. */
export async function closeAll(): Promise<void> {
  for (const close of opened.splice(0).reverse()) await close();
}
