import type { LiveControl } from '../../limiter/control.js';

/** A block or an exemption in metadata and logs. */
export interface ReportedControl {
  readonly kind: 'block' | 'allow';
  readonly id: string;
  /** The operator's reason; absent if none was given. */
  readonly reason?: string;
}

/** Returns a control without the caller that it names. */
export function reportedControl({ kind, id, reason }: LiveControl): ReportedControl {
  return reason === '' ? { kind, id } : { kind, id, reason };
}

/** Returns the member `control` for metadata and logs; no member if there is no control. */
export function controlMember(control: LiveControl | undefined): { readonly control?: ReportedControl } {
  return control === undefined ? {} : { control: reportedControl(control) };
}
