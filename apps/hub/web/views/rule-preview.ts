// What the rule editor judges: the samples of the worst series that a draft covers, and what its matchers meet. The
// threshold is none of its parameters: moving it asks for nothing.

import { isObject } from '../../../../core/json-object.ts'
import { limits } from '../../../../core/limits.ts'
import { invalidField } from '../../platform/http/api-error.ts'
import { type LabelSet, previewSeries } from '../../rules/preview-series.ts'
import { isScope, type ScopeInput } from '../../scopes/scope.ts'
import { toRuns } from './time-runs.ts'
import type { View, ViewContext } from './view.ts'

/** A week of samples of five series is some hundred kilobytes: read once a minute, and not every two seconds. */
const AGE_MS = 60_000
const HOURS_MAX = 168

type PreviewSeries = {
  readonly serverId: string
  readonly serverName: string
  readonly labels: Readonly<Record<string, string>>
  /** Runs of time-runs.ts. */
  readonly times: readonly number[]
  readonly values: readonly number[]
  readonly heard: readonly number[]
}

export type RulePreviewView = {
  readonly fromMs: number
  readonly toMs: number
  readonly stepSeconds: number
  /** `covered` by the scope; `read` of these; `unanswered` of these. */
  readonly servers: { readonly covered: number; readonly read: number; readonly unanswered: number }
  readonly collector: 'ok' | 'unavailable' | 'not_configured'
  /** Series of the servers that were read, that the matchers meet. */
  readonly matched: number
  readonly labels: readonly LabelSet[]
  /** The worst first. */
  readonly series: readonly PreviewSeries[]
}

/** A parameter of JSON. Throws ApiError 422 on the field. */
export function jsonParam({ param }: Pick<ViewContext, 'param'>, name: string): Readonly<Record<string, unknown>> {
  const text = param(name)
  if (text === '') return {}
  try {
    const value: unknown = JSON.parse(text)
    if (isObject(value)) return value
  } catch {
    // Said below, as for a value that is no object.
  }
  throw invalidField(name, 'object')
}

export function scopeParam(context: Pick<ViewContext, 'param'>): ScopeInput {
  const scope = jsonParam(context, 'scope')
  if (!isScope(scope)) throw invalidField('scope', 'pattern')
  return scope
}

export const hoursParam = ({ param }: Pick<ViewContext, 'param'>): number =>
  Math.min(HOURS_MAX, Math.max(1, Math.floor(Number(param('hours'))) || 24))

export const rulePreviewView: View<RulePreviewView> = {
  permissions: ['monitoring.manage'],
  params: ['metric', 'matchers', 'scope', 'worst', 'hours'],
  ageMs: AGE_MS,
  async make(context) {
    const { hub, companyId, param } = context
    const preview = await previewSeries(
      { hub, companyId },
      {
        metric: param('metric'),
        matchers: jsonParam(context, 'matchers'),
        scope: scopeParam(context),
        worst: param('worst') === 'low' ? 'low' : 'high',
        hours: hoursParam(context),
      },
    )
    return {
      ...preview.range,
      stepSeconds: limits.queryStepMinMs / 1000,
      servers: preview.servers,
      collector: preview.collector,
      matched: preview.matched,
      labels: preview.labels,
      series: preview.series.map(({ server, labels, points, heardAtMs }) => ({
        serverId: server.id,
        serverName: server.name,
        labels,
        times: toRuns(points.map(([tsMs]) => tsMs)),
        values: points.map(([, value]) => value),
        heard: toRuns(heardAtMs),
      })),
    }
  },
}
