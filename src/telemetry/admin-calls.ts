import type { FamilyRegistry } from './family-registry.js';

const RESULTS = {
  ok: 'done',
  refused: 'no permission, or an invalid request; nothing changed',
  failed:
    'the store or a worker was unavailable; the action may have succeeded if the answer contains `maybe_done`',
  dry_run: 'a dry run; nothing changed',
} as const;

/** Result of an operator's command. */
export type AdminResult = keyof typeof RESULTS;

/** Counts an operator's command. `action` is one of a few names. */
export type AdminCounter = (action: string, result: AdminResult) => void;

/** Returns a function that counts operators' commands. */
export function adminCounter(registry: FamilyRegistry): AdminCounter {
  const counter = registry.events(
    'weir_admin_total',
    {
      action: {
        meaning: 'The action; `access` for calls without permission.',
      },
      result: { meaning: 'The result.', values: RESULTS },
    },
    'Bucket commands on the debug port, by action and result.',
  );
  return (action, result) => counter.inc({ action, result });
}
