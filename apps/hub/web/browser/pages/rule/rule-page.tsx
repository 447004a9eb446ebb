// One rule: what it says, whom it covers and whom not, what it told, and how it came to be as it is.
import '../rules/rules.css'
import './rule.css'
import { useState } from 'preact/hooks'
import type { RuleView } from '../../../views/rule.ts'
import { rulesWords } from '../../../words/rules.ts'
import { goTo, hrefTo } from '../../address/router.ts'
import { type ApiFault, send } from '../../api.ts'
import { usePageKeys } from '../../keys.ts'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { LateSilenceDialog } from '../../parts/late-dialog.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { may, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { conditionText, scopeText } from '../rules/condition-text.ts'
import { RuleNotes } from '../rules/rule-notes.tsx'
import { CoveredPanel, UncoveredPanel } from './coverage.tsx'
import { DeleteDialog } from './delete-dialog.tsx'
import { AlertsPanel, SilencesPanel, VersionsPanel } from './rule-panels.tsx'

const t = textsOf(rulesWords)

export function RulePage() {
  const { data, fault, reload } = usePageView<RuleView>('rule')
  const [actFault, setActFault] = useState<ApiFault | null>(null)
  const [asked, setAsked] = useState<'delete' | 'silence' | null>(null)
  usePageKeys({ m: () => setAsked('silence') })
  if (data === null) return fault === null ? <Skeleton lines={12} /> : <Fault fault={fault} onRetry={reload} />
  const { rule } = data
  const act = async (verb: string): Promise<void> => {
    const result = await send<{ data: { id: string } }>('POST', `/monitoring/rules/${rule.id}/${verb}`)
    setActFault(result.ok ? null : result.fault)
    if (result.ok && verb === 'duplicate') goTo(hrefTo('rule_edit', { rule: result.body.data.id }))
    else reload()
  }
  return (
    <>
      <div class="page-head">
        <h1>{rule.name}</h1>
        <StateMark state={rule.severity} />
        <RuleNotes rule={rule} />
        <span class="grow" />
        <a class="button primary" href={hrefTo('rule_edit', { rule: rule.id })}>
          {t('edit')}
        </a>
        <button type="button" onClick={() => void act(rule.isEnabled ? 'disable' : 'enable')}>
          {t(rule.isEnabled ? 'disable' : 'enable')}
        </button>
        {rule.kind === 'agent_down' ? null : (
          <button type="button" onClick={() => void act('duplicate')}>
            {t('duplicate')}
          </button>
        )}
        <button type="button" title="m" onClick={() => setAsked('silence')}>
          {t('silence')}
        </button>
        {may('monitoring.delete') ? (
          <button type="button" class="danger" onClick={() => setAsked('delete')}>
            {t('delete')}
          </button>
        ) : null}
      </div>
      <ActFault fault={actFault} />
      <p class="rule-sentence">{conditionText(rule)}</p>
      <p class="muted rule-sentence">{scopeText(rule.scope)}</p>
      <div class="rule-panels">
        <CoveredPanel data={data} />
        <UncoveredPanel data={data} />
        <AlertsPanel data={data} />
        <VersionsPanel data={data} />
        <SilencesPanel data={data} />
      </div>
      {asked === 'delete' ? <DeleteDialog rule={rule} onClose={() => setAsked(null)} /> : null}
      {asked === 'silence' ? (
        <LateSilenceDialog
          start={{ rules: [{ id: rule.id, name: rule.name }], isOfRule: true, hours: 4 }}
          onClose={() => setAsked(null)}
          onDone={reload}
        />
      ) : null}
    </>
  )
}
