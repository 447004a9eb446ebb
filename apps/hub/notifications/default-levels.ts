// From which severity on a person is told who never said anything, by channel (decision G-104).
import { severities } from '../../../core/alerting/rules/rule.ts'

export const levels = [...severities, 'off'] as const
export type Level = (typeof levels)[number]

export const DEFAULT_LEVELS = { bell: 'info', email: 'warning', push: 'critical' } as const satisfies Readonly<
  Record<string, Level>
>
export type PreferenceChannel = keyof typeof DEFAULT_LEVELS
