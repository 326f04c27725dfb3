/**
 * Duration of each attack in the tests. It is enough for several of the largest messages, and one message suffices to
 * find a task that blocks the event loop. `npm run stall` attacks for longer.
 */
export const TEST_ATTACK_MS = 300;
