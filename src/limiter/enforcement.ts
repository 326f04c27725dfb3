/**
 * Effect of a limited item on the request:
 * - `enforce`: the request is denied.
 * - `observe`: the request is never denied by this item (monitoring, grace period, shadow mode).
 * - `quota`: the request is denied only if all its `quota` items are limited.
 * - `spill`: the item never denies. If it is limited, the next item applies instead. Otherwise, the next item is
 *   skipped, see `isSkipped`. A peek is limited if there is no room for one hit, also in a window. The last item of
 *   such a chain has another enforcement, which applies to the whole chain.
 */
export type Enforcement = 'enforce' | 'observe' | 'quota' | 'spill';
