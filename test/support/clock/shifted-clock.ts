/* Preloaded into weir with NODE_OPTIONS=--require. The wall clock of weir is wrong by WEIR_CLOCK_SHIFT_MS. */
const shiftMs = Number(process.env['WEIR_CLOCK_SHIFT_MS'] ?? '0');
const trueNow = Date.now.bind(Date);

Date.now = () => trueNow() + shiftMs;
