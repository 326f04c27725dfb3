import type { FamilyRegistry } from './family-registry.js';

const RESULTS = {
  ok: 'it was done, or shown',
  refused: 'the caller may not do it, or asked for what cannot be: nothing was done',
  failed: 'the store, or a worker, could not be asked: the answer says whether it may have been done',
  dry_run: 'what it would do was shown, and nothing was done',
} as const;

/** What became of a call that administers weir. */
export type AdminResult = keyof typeof RESULTS;

/** Counts calls that administer weir: `action` is one of a handful. */
export type AdminCounter = (action: string, result: AdminResult) => void;

/** The counter of calls that administer weir. */
export function adminCounter(registry: FamilyRegistry): AdminCounter {
  const counter = registry.events(
    'weir_admin_total',
    {
      action: {
        meaning: 'What was asked for; `access` for calls that were refused before it was looked at.',
      },
      result: { meaning: 'What became of it.', values: RESULTS },
    },
    'Calls to the debug port that administer buckets, or ask about them, by action and result.',
  );
  return (action, result) => counter.inc({ action, result });
}
