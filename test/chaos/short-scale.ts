/** How long faults last in the tests, of what they last in the long form: all of them together take two minutes. */
export const SHORT_SCALE = 0.3;
