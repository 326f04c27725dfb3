/** An event with listeners, which are called in the order in which they were added. */
export class Signal<First = void, Second = void> {
  readonly #listeners: ((first: First, second: Second) => void)[] = [];

  readonly add = (listener: (first: First, second: Second) => void): void => {
    this.#listeners.push(listener);
  };

  readonly emit = (first: First, second: Second): void => {
    for (const listener of this.#listeners) listener(first, second);
  };
}

/** Learns what becomes of an answered call. At most one of the methods is called, once. They must not throw. */
export interface ResetListener {
  /** The caller has canceled the call. */
  onReset(): void;
  /** The call was answered, and its connection no longer remembers it. */
  onForgotten(): void;
}

/** Handles errors that need no handling. */
export function ignore(): void {}
