// How long an API token lives: unless somebody says otherwise, and at most.
import { DAY_MS } from '../../../core/limits.ts'

const tokenLifeMs = 90 * DAY_MS
export const DAYS_MAX = 3650
export const defaultLifeDays = tokenLifeMs / DAY_MS
