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
