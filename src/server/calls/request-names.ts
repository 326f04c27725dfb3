/** A connection, as far as names of its requests need it. */
interface Named {
  readonly number: number;
  requests: number;
}

/**
 * Names requests for logs, so that it can be seen which lines are of one, where they have no `x-request-id`: by the
 * number of the connection and of the request on it, as in `3.17`. Both count from 1 in each process.
 */
export class RequestNames {
  readonly #connections = new WeakMap<object, Named>();
  #count = 0;

  /** The name of the next request of a connection. */
  next(connection: object): string {
    let named = this.#connections.get(connection);
    if (named === undefined) {
      named = { number: ++this.#count, requests: 0 };
      this.#connections.set(connection, named);
    }
    return `${named.number}.${++named.requests}`;
  }
}
