import type { ControlKind, ControlsChange, IdentityPart, LiveControl } from '../../limiter/control.js';
import { DomainControls } from './domain-controls.js';

/**
 * The controls in force, by domain, as decisions look for them. Follows a ControlBook by {@link ControlIndex.apply}.
 */
export class ControlIndex {
  readonly #monotonicMicros: () => number;
  readonly #byId = new Map<string, LiveControl>();
  readonly #domains = new Map<string, DomainControls>();
  readonly #counts: Record<ControlKind, number> = { block: 0, allow: 0 };

  constructor(monotonicMicros: () => number) {
    this.#monotonicMicros = monotonicMicros;
  }

  /** How many controls are in force; some may have ended in the last tenths of a second. */
  count(kind: ControlKind): number {
    return this.#counts[kind];
  }

  /** Undefined where the domain has none, which is nearly always. */
  of(domain: string): DomainControls | undefined {
    return this.#byId.size === 0 ? undefined : this.#domains.get(domain);
  }

  /** Whether a request of the domain may be blocked, so far as nobody looks at it. */
  blocks(domain: string): boolean {
    return (this.of(domain)?.blocks ?? 0) > 0;
  }

  /**
   * Whether one more control may name these keys: decisions look for each set of keys by itself, so a domain has at
   * most MAX_KEY_SETS of them.
   */
  hasRoomFor(domain: string, identity: readonly IdentityPart[]): boolean {
    return this.#domains.get(domain)?.hasRoomFor(identity) ?? true;
  }

  /** Takes some tenths of a millisecond for the largest piece of the book's changes. */
  apply({ isReset, set, ended }: ControlsChange): void {
    if (isReset) {
      this.#byId.clear();
      this.#domains.clear();
      this.#counts.block = 0;
      this.#counts.allow = 0;
    }
    for (const id of ended) this.#end(id);
    for (const control of set) {
      this.#end(control.id);
      this.#begin(control);
    }
  }

  #begin(control: LiveControl): void {
    const { id, kind, domain } = control;
    this.#byId.set(id, control);
    this.#counts[kind]++;
    let controls = this.#domains.get(domain);
    if (controls === undefined) {
      controls = new DomainControls(this.#monotonicMicros);
      this.#domains.set(domain, controls);
    }
    controls.add(control);
  }

  #end(id: string): void {
    const control = this.#byId.get(id);
    if (control === undefined) return;
    const { kind, domain } = control;
    this.#byId.delete(id);
    this.#counts[kind]--;
    const controls = this.#domains.get(domain);
    controls?.remove(control);
    if (controls?.isEmpty === true) this.#domains.delete(domain);
  }
}
