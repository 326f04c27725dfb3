/** Duration of each attack in the tests, which keeps all cases together below 150 seconds. */
export const TEST_ATTACK_MS = 300;
