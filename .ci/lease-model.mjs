// Checks the guarantees of leases in every state of a small model: two processes that share a bucket of at most four
// tokens, and a clock with whole ticks. A lease of d ticks is a number of tokens that a process takes at once and then
// spends alone. C is the capacity of the bucket, r its refill per tick, and t any number of ticks. The guarantees are:
//
//   G1  processes never take more tokens than the bucket holds, and spend only tokens that they have taken
//   G2  with `exact`, at most C + r·t requests are allowed in any t ticks
//   G3  without `exact`, at most C + r·(t + d) requests are allowed in any t ticks
//   G4  at most as many requests are allowed in a window as its limit
//
// The model has a switch for each rule of the mechanism. Without any one of these rules, it must find a violated
// guarantee. `node .ci/lease-model.mjs` prints the steps that lead to it.
//
// A process may do nothing while time passes, so the model includes processes that are stopped (SIGSTOP) in any state.
// Requests and replies take any time, get lost, and arrive after their process has crashed.
import { Impossible, isProgram, say } from './shell.mjs';

/**
 * @typedef {object} Limit
 * @property {number} capacity tokens of the bucket, or hits per window
 * @property {number} refill tokens per tick; 0 for a window
 * @property {number} life life of a lease, in ticks
 * @property {number} window length of a window in ticks; 0 for a token bucket
 * @property {boolean} exact whether G2 must hold, otherwise G3
 *
 * @typedef {object} Call A request for a lease, and then its reply.
 * @property {number} age ticks since the process sent the request
 * @property {number} granted tokens in the reply; 0 until the store has decided
 * @property {number} windowLeft ticks from the store's decision to the end of the window
 *
 * @typedef {object} Process
 * @property {readonly number[]} leased leased tokens by the number of ticks for which they may still be spent
 * @property {Call | undefined} call
 * @property {number} late ticks since the process read the clock; always 0 if it reads the clock at each spend
 *
 * @typedef {object} State
 * @property {number} used tokens that the store's bucket lacks, or hits that its window has counted
 * @property {number} allowed number of requests that the guarantee still allows now
 * @property {number} windowLeft ticks until the window ends; 0 for a token bucket
 * @property {number} capacity an operator lowers it once
 * @property {number} owed tokens that the store has given to leases, and that are not spent, lapsed or lost
 * @property {number} returned tokens on their way back to the store; always 0 if nothing is given back
 * @property {readonly Process[]} processes
 * @property {string} [step] the step that led to this state
 * @property {State} [from] the previous state
 * @property {string} [broken] the violated guarantee
 */

/** The rules of the mechanism. */
const RULES = {
  takenFirst: 'a process spends only tokens that the store has granted',
  partialGrants: 'a lease has as many tokens as the store has granted, not as many as were requested',
  lifeFromSending: 'the life of a lease starts when the request is sent',
  ownEnd: 'a new lease does not prolong an earlier lease of the same bucket',
  notRenewedByUse: 'spending a token does not prolong the lease',
  clockAtEachSpend: 'a process reads the clock at each spend',
  monotonicClock: 'the clock of a lease is never set back',
  nothingGivenBack: 'unspent tokens lapse, and are not given back',
  smallerForLeases: 'leases take from a bucket with C - r·d tokens',
  smallerForOthers: 'requests without a lease also take from a bucket with C - r·d tokens',
  endsWithChange: 'a lease ends when its limit changes',
  endsWithWindow: 'a lease ends with its window',
  windowOfStore: "the store's clock determines when the window ends",
  windowFromSending: 'the time until the window ends counts from when the request was sent',
  deniedNotCounted: 'a window does not count hits that it denies',
};

const ALL_RULES = Object.fromEntries(Object.keys(RULES).map((rule) => [rule, true]));

const bucket = (capacity, refill, life, exact = true) => ({ capacity, refill, life, window: 0, exact });
const windowed = (capacity, window, life) => ({ capacity, refill: 0, life, window, exact: true });
/** @type {readonly Limit[]} */
const LIMITS = [
  ...[bucket(2, 1, 1), bucket(3, 1, 1), bucket(4, 1, 1), bucket(4, 2, 1), bucket(4, 1, 2)],
  ...[bucket(2, 1, 1, false), bucket(2, 1, 2, false)],
  ...[windowed(2, 2, 1), windowed(3, 2, 2), windowed(2, 3, 2)],
];

/** Number of ticks by which a process without a rule about clocks may err. */
const MAX_LATE = 2;
const PROCESSES = [0, 1];

/** Returns the capacity of the store's bucket: C - r·d for a smaller bucket. */
const capacityOf = ({ capacity }, { refill, life, exact }, isSmaller) =>
  exact && isSmaller ? capacity - refill * life : capacity;

/** Returns how many requests may be allowed in no time: C, or C + r·d for G3. */
const mostAllowed = (capacity, { refill, life, exact }) => (exact ? capacity : capacity + refill * life);

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

/** Adds tokens to the leased tokens that may be spent for `left` more ticks. */
function plus(leased, left, tokens) {
  const after = [...leased];
  for (let i = after.length; i <= left; i++) after.push(0);
  after[left] += tokens;
  return after;
}

/** @returns {State} */
function firstState(limit) {
  const { capacity, window } = limit;
  const processes = PROCESSES.map(() => ({ leased: [], call: undefined, late: 0 }));
  const allowed = mostAllowed(capacity, limit);
  return { used: 0, allowed, windowLeft: window, capacity, owed: 0, returned: 0, processes };
}

/** Yields the states that follow a state in one step. @returns {Generator<State>} */
function* nextStates(state, limit, rules) {
  yield tick(state, limit, rules);
  yield* storeSteps(state, limit, rules);
  for (const at of PROCESSES) {
    for (const { process, step, ...changes } of processSteps(state, state.processes[at], limit, rules)) {
      const processes = state.processes.with(at, { ...state.processes[at], ...process });
      yield { ...state, ...changes, processes, step: `process ${at}: ${step}` };
    }
  }
}

/** A tick passes: tokens refill or a window ends, and leases get older. */
function tick(state, limit, rules) {
  const { refill, life, window } = limit;
  const windowLeft = state.windowLeft === 1 ? window : Math.max(0, state.windowLeft - 1);
  const isNewWindow = window > 0 && windowLeft === window;
  let lapsed = 0;
  const processes = state.processes.map(({ leased, call, late }) => {
    // From the life of a lease on, a higher age makes no difference.
    const older = call && { ...call, age: Math.min(call.age + 1, life + 1) };
    if (!rules.clockAtEachSpend) return { leased, call: older, late: Math.min(late + 1, MAX_LATE) };
    lapsed += leased[0] ?? 0;
    return { leased: leased.slice(1), call: older, late };
  });
  return {
    ...state,
    used: isNewWindow ? 0 : Math.max(0, state.used - refill),
    allowed: isNewWindow
      ? limit.capacity
      : Math.min(mostAllowed(state.capacity, limit), state.allowed + refill),
    windowLeft,
    owed: state.owed - lapsed,
    returned: rules.nothingGivenBack ? 0 : state.returned + lapsed,
    processes,
    step: isNewWindow ? 'a window ends' : 'a tick passes',
  };
}

/** Steps that no process of the model takes. */
function* storeSteps(state, limit, rules) {
  const { used, allowed, returned } = state;
  if (used < capacityOf(state, limit, rules.smallerForOthers))
    yield { ...state, used: used + 1, allowed: allowed - 1, step: 'a request without a lease is allowed' };
  if (used < capacityOf(state, limit, rules.smallerForLeases))
    yield { ...state, used: used + 1, step: 'a token is taken for a process that has crashed' };
  if (returned > 0)
    yield { ...state, used: Math.max(0, used - returned), returned: 0, step: 'lapsed tokens are given back' };
  if (limit.window === 0 && limit.capacity === 4 && state.capacity === 4) {
    const capacity = 3;
    const without = state.processes.map((one) => ({ ...one, leased: [], call: undefined }));
    const ended = rules.endsWithChange ? { processes: without, owed: 0 } : {};
    const step = `the limit changes to ${capacity}`;
    yield { ...state, capacity, allowed: mostAllowed(capacity, limit), ...ended, step };
  }
}

/** Yields the steps of a process: changes of the process, and of the other fields of the state. */
function* processSteps(state, { leased, call, late }, limit, rules) {
  const { allowed, owed } = state;
  for (const [left, tokens] of leased.entries()) {
    if (tokens === 0) continue;
    const rest = plus(leased, left, -1);
    const renewed = plus(plus(rest, left, 1 - tokens), limit.life, tokens - 1);
    const process = { leased: rules.notRenewedByUse ? rest : renewed };
    yield { process, allowed: allowed - 1, owed: owed - 1, step: 'spends a leased token' };
  }
  const lost = sum(leased) + (call?.granted ?? 0);
  yield { process: { leased: [], call: undefined, late: 0 }, owed: owed - lost, step: 'crashes' };
  if (late > 0) {
    const process = { leased: leased.slice(late), late: 0 };
    yield { process, owed: owed - sum(leased.slice(0, late)), step: 'reads the clock' };
  }
  if (!rules.monotonicClock && leased.length <= limit.life + MAX_LATE)
    yield { process: { leased: [0, ...leased] }, step: 'has its clock set back' };
  if (call === undefined) {
    const process = { call: { age: 0, granted: 0, windowLeft: 0 } };
    yield {
      process: rules.takenFirst ? process : { ...process, leased: plus(leased, limit.life, 1) },
      step: 'asks',
    };
  } else if (call.granted === 0) yield* decisions(state, call, limit, rules);
  else {
    yield { process: { call: undefined }, owed: owed - call.granted, step: 'gets no reply' };
    const left = ticksLeft(call, limit, rules);
    if (left < 0) return;
    const earlier = rules.ownEnd ? leased : plus([], left, sum(leased));
    yield { process: { leased: plus(earlier, left, call.granted), call: undefined }, step: 'gets its lease' };
  }
}

/** The store decides a request for any number of tokens. */
function* decisions(state, call, limit, rules) {
  const { used, owed, windowLeft } = state;
  const capacity = capacityOf(state, limit, rules.smallerForLeases);
  for (let asked = 1; asked <= limit.capacity; asked++) {
    const granted = Math.min(asked, Math.max(0, capacity - used));
    const counted = limit.window > 0 && !rules.deniedNotCounted ? asked : granted;
    const inReply = rules.partialGrants ? granted : asked;
    const process = { call: inReply === 0 ? undefined : { ...call, granted: inReply, windowLeft } };
    const step = `gets ${granted} of ${asked} tokens from the store`;
    const broken =
      used + counted > Math.max(used, capacity) ? 'G1: more is taken than the bucket holds' : undefined;
    yield { process, used: used + counted, owed: owed + granted, step, broken };
  }
}

/** Returns for how many ticks the tokens of a reply may be spent after it has arrived; less than 0 for no time. */
function ticksLeft({ age, windowLeft }, { life, window }, rules) {
  const left = life - (rules.lifeFromSending ? age : 0);
  if (window === 0 || !rules.endsWithWindow) return left;
  // The clock of the process may say that the window ends one tick later.
  const toEnd = rules.windowOfStore ? windowLeft : windowLeft + 1;
  return Math.min(left, toEnd - 1 - (rules.windowFromSending ? age : 0));
}

/** Returns the guarantee that a state violates, or undefined. */
function violation({ broken, allowed, owed, processes }, { window, exact }) {
  if (broken !== undefined) return broken;
  const held = processes.map(({ leased, call }) => sum(leased) + (call?.granted ?? 0));
  if (sum(held) > owed) return 'G1: processes hold tokens that the bucket has not given';
  if (allowed >= 0) return undefined;
  if (window > 0) return 'G4: more requests are allowed in a window than its limit';
  return exact
    ? 'G2: more than C + r·t requests are allowed'
    : 'G3: more than C + r·(t + d) requests are allowed';
}

/** Returns a text that is equal for states that differ only in the order of their processes. */
function keyOf({ used, allowed, windowLeft, capacity, owed, returned, processes }) {
  const [one, other] = processes.map(({ leased, call, late }) => {
    const inCall = call === undefined ? '' : `${call.age},${call.granted},${call.windowLeft}`;
    return `${leased.join().replace(/(,0)+$/, '')};${inCall};${late}`;
  });
  const both = one < other ? `${one};${other}` : `${other};${one}`;
  return `${used},${allowed},${windowLeft},${capacity},${owed},${returned};${both}`;
}

/**
 * Visits all states of a limit, and first those that few steps lead to. Returns the number of states, and the first
 * state that violates a guarantee.
 */
function explore(limit, rules) {
  const first = firstState(limit);
  const seen = new Set([keyOf(first)]);
  const open = [first];
  for (const state of open) {
    for (const next of nextStates(state, limit, rules)) {
      const key = keyOf(next);
      if (seen.has(key)) continue;
      seen.add(key);
      next.from = state;
      next.broken = violation(next, limit);
      if (next.broken !== undefined) return { states: seen.size, found: next };
      open.push(next);
    }
  }
  return { states: seen.size, found: undefined };
}

/** Returns the steps that lead to a state, and the guarantee that it violates, as lines. */
function story(state) {
  const steps = [];
  for (let at = state; at.from !== undefined; at = at.from) steps.unshift(`  ${at.step}`);
  return [...steps, `  ${state.broken}`].join('\n');
}

/**
 * Visits all states of all limits, and breaks each rule. Throws {@link Impossible} if a guarantee does not hold, or if
 * all guarantees hold without a rule. Returns the number of states, and for each rule what happens without it.
 */
export function checkLeases() {
  let states = 0;
  for (const limit of LIMITS) {
    const result = explore(limit, ALL_RULES);
    states += result.states;
    if (result.found !== undefined)
      throw new Impossible(`leases of ${JSON.stringify(limit)} violate a guarantee:\n${story(result.found)}`);
  }
  const stories = Object.entries(RULES).map(([rule, text]) => {
    for (const limit of LIMITS) {
      const { found } = explore(limit, { ...ALL_RULES, [rule]: false });
      if (found !== undefined) return `Without "${text}":\n${story(found)}`;
    }
    throw new Impossible(`leases keep their guarantees without the rule "${text}"`);
  });
  return { states, stories };
}

if (isProgram(import.meta.url)) {
  const { states, stories } = checkLeases();
  for (const one of stories) say(one);
  say(
    `The guarantees of leases hold in ${states} states, and do not hold without any of ${stories.length} rules`,
  );
}
