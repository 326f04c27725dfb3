import type { HeaderValue } from '../../codec/messages.js';
import type { AddedHeader, OnOver } from '../../policy/rule.js';
import type { RequestContext } from '../plan.js';
import { Merged } from './merged-metadata.js';

/** Maximum number of headers that soft limits add to one request. Each has another name. */
const MAX_HEADERS = 64;

/** The marks of a request that passed over soft limits (`on_over`). */
export interface Marks {
  /** Headers for the upstream request. */
  readonly headers: readonly HeaderValue[];
  /** Merged metadata of the limits; undefined if none has any. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Returns the marks of an allowed request; undefined if it is over no soft limit. If several limits set the same header
 * or the same member of the metadata, the first one wins.
 */
export function marksOf({ policy, decisions, denied }: RequestContext): Marks | undefined {
  if (!policy.hasSoftLimits || denied) return undefined;
  let exceeded: Set<OnOver> | undefined;
  for (const { takes } of decisions) {
    for (const { marks, outcome, rule } of takes) {
      if (!marks || outcome?.limited !== true || rule?.onOver === undefined) continue;
      exceeded ??= new Set();
      exceeded.add(rule.onOver);
    }
  }
  if (exceeded === undefined) return undefined;
  const headers = new Map<string, AddedHeader>();
  const merged = new Merged();
  let isFull = false;
  for (const { requestHeaders, metadata } of exceeded) {
    for (const header of requestHeaders) {
      if (headers.size < MAX_HEADERS && !headers.has(header.key)) headers.set(header.key, header);
    }
    if (metadata !== undefined && !isFull) isFull = !merged.add(metadata);
  }
  return { headers: [...headers.values()], metadata: merged.isEmpty ? undefined : merged.members };
}
