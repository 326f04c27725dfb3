import type { HoldMarks } from './hold-marks.js';
import { isOwnToken } from './hold-token.js';
import type { EndSource } from './late-ends.js';

/** The ends of the holds in one token. */
export class TokenSource implements EndSource {
  readonly connection: unknown;
  readonly #marks: Pick<HoldMarks, 'isOwn'>;
  /** Only until the mark was checked, so that ends that wait do not keep the token in memory. */
  #token: string;
  #isOwn: boolean | undefined;

  constructor(token: string, marks: Pick<HoldMarks, 'isOwn'>, connection: unknown) {
    this.#token = token;
    this.#marks = marks;
    this.connection = connection;
  }

  isOwn(): boolean {
    this.#isOwn ??= isOwnToken(this.#token, this.#marks);
    this.#token = '';
    return this.#isOwn;
  }
}
