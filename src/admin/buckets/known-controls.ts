import type { ControlBook, ControlsChange, LiveControl } from '../../limiter/control.js';

/** Controls that this process knows, by ID. */
export class KnownControls {
  readonly #monotonicMicros: () => number;
  readonly #byId = new Map<string, LiveControl>();

  constructor(book: Pick<ControlBook, 'onChange'>, monotonicMicros: () => number) {
    this.#monotonicMicros = monotonicMicros;
    book.onChange((change) => this.#apply(change));
  }

  /** Returns a control that has not expired. */
  get(id: string): LiveControl | undefined {
    const control = this.#byId.get(id);
    return control !== undefined && this.#isLive(control) ? control : undefined;
  }

  /** Returns the current controls for which `is` returns true. '' is a pause. */
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
