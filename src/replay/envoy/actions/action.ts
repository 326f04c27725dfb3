import type { DescriptorEntry } from '../../../codec/messages.js';
import type { YamlValue } from '../../../config/yaml/yaml-document.js';
import type { LineValues } from '../../log/log-format.js';
import type { LogFields, LogValue } from '../log-fields.js';

/** Facts about the route of a request, for actions. Absent facts come from the log. */
export interface RouteFacts {
  /** Name of the cluster (config.route.v3.RouteAction.cluster). */
  readonly cluster?: LogValue;
  /** `filter_metadata` of the route (config.core.v3.Metadata). */
  readonly metadata?: YamlValue;
}

/** The configuration that all actions share. */
export interface ActionContext {
  readonly log: LogFields;
  /** Name of the cluster that Envoy belongs to: `node.cluster` of the bootstrap. */
  readonly localCluster: string | undefined;
  /** Whether the configuration contains the facts of every route. */
  readonly knowsClusters: boolean;
  readonly knowsMetadata: boolean;
}

/** Result of an action that adds no entry to the descriptor. */
export const NO_ENTRY = null;

/** A compiled action. */
export interface Action {
  /** Returns the entry, or {@link NO_ENTRY}. Returns undefined if Envoy sends no descriptor. */
  readonly entry: (values: LineValues, route: RouteFacts) => DescriptorEntry | typeof NO_ENTRY | undefined;
  /** Whether the value is the hold token of weir, which the replay knows and the log does not. */
  readonly isHoldToken?: boolean;
}
