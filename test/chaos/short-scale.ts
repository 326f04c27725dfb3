/** Factor for the duration of faults in the tests. All faults together then take about two minutes. */
export const SHORT_SCALE = 0.3;
