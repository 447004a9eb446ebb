// A series that opens and closes again and again (document 2 "Flapping" 1 to 6, decision G-85): the fourth transition
// within the window puts it in flapping; then opened and resolved are withheld until half an hour passes without one.

export type FlapSettings = {
  readonly windowMs: number
  /** 0 disables; 1 counts as 2. */
  readonly transitions: number
  readonly stableMs: number
}

/** Unless the operator says otherwise (document 2 "Limits"). */
export const FLAP_DEFAULTS: FlapSettings = { windowMs: 30 * 60_000, transitions: 4, stableMs: 30 * 60_000 }

export type FlapState = {
  /** Sample times of the opens and closes within the window, ascending. */
  transitionsTsMs: number[]
  isFlapping: boolean
  /** While flapping: transitions since it began, the one that began it included. */
  countSinceEntered: number
  /** Wall time of the last transition. */
  lastTransitionAtMs: number
  /** Sample time of the last close, and of the last opening that was sent to the hub. */
  closedTsMs: number
  toldOpenedTsMs: number
  /** The peak that the resolved event carries when flapping ends. */
  peak: number
}

export const newFlapState = (): FlapState => ({
  transitionsTsMs: [],
  isFlapping: false,
  countSinceEntered: 0,
  lastTransitionAtMs: 0,
  closedTsMs: 0,
  toldOpenedTsMs: 0,
  peak: Number.NaN,
})

/**
 * What to emit for a transition. tell: its own event. enter: alert.flapping, and for an opening its own event too.
 * withhold: nothing.
 */
type FlapVerdict = 'tell' | 'enter' | 'withhold'

/** Records an opening or closing at sample time `tsMs` and returns what to emit for it. */
export function recordTransition(flap: FlapState, settings: FlapSettings, tsMs: number, nowMs: number): FlapVerdict {
  flap.lastTransitionAtMs = nowMs
  if (flap.isFlapping) {
    flap.countSinceEntered++
    return 'withhold'
  }
  if (settings.transitions === 0) return 'tell'
  flap.transitionsTsMs.push(tsMs)
  flap.transitionsTsMs = flap.transitionsTsMs.filter(at => tsMs - at <= settings.windowMs)
  if (flap.transitionsTsMs.length < Math.max(2, settings.transitions)) return 'tell'
  flap.isFlapping = true
  flap.countSinceEntered = 0
  return 'enter'
}

/** True when a flapping series has been quiet for long enough. Wall time. */
export const isStable = (flap: FlapState, settings: FlapSettings, nowMs: number): boolean =>
  flap.isFlapping && nowMs - flap.lastTransitionAtMs >= settings.stableMs

/**
 * True when the flapping state can be dropped: no sample that still comes can be within the window of its transitions.
 * Measured in wall time; a day is added, since samples may be that late.
 */
export const isForgettable = (flap: FlapState, settings: FlapSettings, nowMs: number): boolean =>
  !flap.isFlapping && nowMs - flap.lastTransitionAtMs > settings.windowMs + 24 * 3_600_000
