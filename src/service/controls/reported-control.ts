import type { LiveControl } from '../../limiter/control.js';

/** A block or an exemption as metadata and logs name it. */
export interface ReportedControl {
  readonly kind: 'block' | 'allow';
  readonly id: string;
  /** Why, as the operator said; absent where nobody did. */
  readonly reason?: string;
}

/** A control without whom it names. */
export function reportedControl({ kind, id, reason }: LiveControl): ReportedControl {
  return reason === '' ? { kind, id } : { kind, id, reason };
}

/** The member `control` of what is told of a decision; empty where there is none. */
export function controlMember(control: LiveControl | undefined): { readonly control?: ReportedControl } {
  return control === undefined ? {} : { control: reportedControl(control) };
}
