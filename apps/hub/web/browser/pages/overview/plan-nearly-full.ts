// When the start page says that the plan of a company is nearly full.
import type { OverviewView } from '../../../views/overview.ts'

/** A plan whose room is used to this share is said to be near its end. */
const NEAR_SHARE = 0.9

/** False for a plan without a limit. */
export const isNearlyFull = ({ used, max }: OverviewView['standing']['quota']): boolean =>
  max !== null && used >= max * NEAR_SHARE
