import type { ControlKind, ControlsChange, IdentityPart, LiveControl } from '../../limiter/control.js';
import { DomainControls } from './domain-controls.js';

/**
 * Indexes the active controls by domain, for decisions. {@link ControlIndex.apply} applies the changes of a
 * ControlBook.
 */
export class ControlIndex {
  readonly #monotonicMicros: () => number;
  readonly #byId = new Map<string, LiveControl>();
  readonly #domains = new Map<string, DomainControls>();
  readonly #counts: Record<ControlKind, number> = { block: 0, allow: 0 };

  constructor(monotonicMicros: () => number) {
    this.#monotonicMicros = monotonicMicros;
  }

  /** Returns the number of active controls; it may include some that ended within the last second. */
  count(kind: ControlKind): number {
    return this.#counts[kind];
  }

  /** Returns the controls of a domain. Most domains have no controls; the result is then undefined. */
  of(domain: string): DomainControls | undefined {
    return this.#byId.size === 0 ? undefined : this.#domains.get(domain);
  }

  /** Returns whether a request of the domain may be blocked, before its descriptors are known. */
  blocks(domain: string): boolean {
    return (this.of(domain)?.blocks ?? 0) > 0;
  }

  /**
   * Returns whether another control with these keys can be added. A decision looks up each set of keys separately, so a
   * domain has at most MAX_KEY_SETS of them.
   */
  hasRoomFor(domain: string, identity: readonly IdentityPart[]): boolean {
    return this.#domains.get(domain)?.hasRoomFor(identity) ?? true;
  }

  /** Applies a change of the book. The largest change takes less than 1 ms. */
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
