// How a run of manifests stands, as a mark.
import type { RunSummary } from '../../../views/manifest-pages.ts'
import { manifestsWords } from '../../../words/manifests.ts'
import { type MarkedState, StateMark } from '../../parts/state-mark.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(manifestsWords)

const marks: Readonly<Record<RunSummary['state'], MarkedState>> = {
  planned: 'info',
  invalid: 'critical',
  applied: 'ok',
  'partially-applied': 'warning',
}

export function RunStateMark({ run }: { readonly run: RunSummary }) {
  if (run.isCancelled) return <StateMark state="decommissioned" text={t('state_cancelled')} />
  if (run.isQueued) return <StateMark state="info" text={t('state_applying')} />
  return <StateMark state={marks[run.state]} text={t(`state_${run.state}`)} />
}
