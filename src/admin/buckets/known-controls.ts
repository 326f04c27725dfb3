import type { ControlBook, ControlsChange, LiveControl } from '../../limiter/control.js';

/** The controls that this process knows of, by their ids. */
export class KnownControls {
  readonly #monotonicMicros: () => number;
  readonly #byId = new Map<string, LiveControl>();

  constructor(book: Pick<ControlBook, 'onChange'>, monotonicMicros: () => number) {
    this.#monotonicMicros = monotonicMicros;
    book.onChange((change) => this.#apply(change));
  }

  /** Of a control that is in force. */
  get(id: string): LiveControl | undefined {
    const control = this.#byId.get(id);
    return control !== undefined && this.#isLive(control) ? control : undefined;
  }

  /** Those in force that `is` says yes to; '' for a pause. */
  *filter(is: (control: LiveControl) => boolean): Generator<'', LiveControl[]> {
    const found: LiveControl[] = [];
    let looked = 0;
    for (const control of [...this.#byId.values()]) {
      if (this.#isLive(control) && is(control)) found.push(control);
      if (++looked % 50 === 0) yield '';
    }
    return found;
  }

  #isLive({ expiresAtMicros }: LiveControl): boolean {
    return expiresAtMicros > this.#monotonicMicros();
  }

  #apply({ isReset, set, ended }: ControlsChange): void {
    if (isReset) this.#byId.clear();
    for (const id of ended) this.#byId.delete(id);
    for (const control of set) this.#byId.set(control.id, control);
  }
}
