// One run: what it would change, whose yes it waits for, and what became of each part.
import '../../resources-kit.ts'
import { useState } from 'preact/hooks'
import type { IacRunView, RunItem, RunStep } from '../../../views/manifest-pages.ts'
import { manifestsWords } from '../../../words/manifests.ts'
import { hrefTo } from '../../address/router.ts'
import { type ApiFault, send } from '../../api.ts'
import { NOTHING } from '../../format.ts'
import { pageTitle } from '../../frame/page-title.ts'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { type MarkedState, StateMark } from '../../parts/state-mark.tsx'
import { Time } from '../../parts/time.tsx'
import { may, textsOf, user } from '../../session.ts'
import { usePageView } from '../../view.ts'
import '../alert/alert.css'
import { ChangedFields } from './changed-fields.tsx'
import './manifests.css'
import { RunStateMark } from './run-state.tsx'

const t = textsOf(manifestsWords)

const marks: Readonly<Record<RunItem['state'], MarkedState>> = {
  planned: 'info',
  applied: 'ok',
  skipped: 'unknown',
  failed: 'critical',
}

function Item({ item }: { readonly item: RunItem }) {
  const notes = [
    ...(item.adopts ? [t('adopts')] : []),
    ...(item.approvalsRequired > 0
      ? [t('approvals_of', { given: item.approvalsGiven, required: item.approvalsRequired })]
      : []),
    ...(item.isForbidden ? [t('forbidden', { permission: item.requires })] : []),
  ]
  return (
    <details class="run-item" open={item.state === 'failed' || (item.state === 'planned' && item.action !== 'none')}>
      <summary>
        <StateMark state={marks[item.state]} text={t(`item_${item.state}`)} />{' '}
        <strong>{t(`action_${item.action}`)}</strong>{' '}
        <span class="text">
          {item.kind} {item.name}
        </span>{' '}
        <span class="muted text">{[item.path, ...notes].join(' · ')}</span>
      </summary>
      {item.error === null ? null : <p class="fault text">{item.error}</p>}
      <ChangedFields diff={item.diff} />
    </details>
  )
}

function Plan({ data: { items } }: { readonly data: IacRunView }) {
  const number = (action: RunItem['action']): number => items.filter(item => item.action === action).length
  return (
    <section class="panel">
      <h2>{t('plan')}</h2>
      <p class="muted">
        {t('counts', {
          create: number('create'),
          update: number('update'),
          delete: number('delete'),
          none: number('none'),
        })}
      </p>
      {items.map(item => (
        <Item item={item} key={item.id} />
      ))}
    </section>
  )
}

function StepText({ step }: { readonly step: RunStep }) {
  if (step.decision === 'approved' || step.decision === 'rejected')
    return (
      <>
        {t(`decision_${step.decision}`)} {step.decidedBy ?? ''}
      </>
    )
  return step.dueAtMs === null ? (
    t('later')
  ) : (
    <>
      {t('waits')} <Time atMs={step.dueAtMs} form="when" />
    </>
  )
}

const Steps = ({ data: { steps } }: { readonly data: IacRunView }) =>
  steps.length === 0 ? null : (
    <section class="panel">
      <h2>{t('steps')}</h2>
      <ol class="plain story">
        {steps.map((step, at) => (
          <li key={at}>
            {step.decidedAtMs === null ? <span>{NOTHING}</span> : <Time atMs={step.decidedAtMs} form="when" />}
            <span class="text">
              <strong>{t('step_of', { flow: step.flow, step: step.step })}</strong> {step.item}:{' '}
              <StepText step={step} />
            </span>
          </li>
        ))}
      </ol>
      {may('approvals.view') ? (
        <p>
          <a href={hrefTo('approvals')}>{t('approvals')}</a>
        </p>
      ) : null}
    </section>
  )

const Faults = ({ data: { faults, untried } }: { readonly data: IacRunView }) => (
  <>
    {faults.length === 0 ? null : (
      <section class="panel">
        <h2>{t('faults')}</h2>
        <ul class="plain">
          {faults.map(({ path, line, message }, at) => (
            <li key={at} class="text">
              <strong>{line === null ? path : t('fault_at', { path, line })}</strong> {message}
            </li>
          ))}
        </ul>
      </section>
    )}
    {untried.length === 0 ? null : <p class="muted text">{t('untried', { paths: untried.join(', ') })}</p>}
  </>
)

type Act = 'apply' | 'cancel' | 'replan'

function actsOf(run: IacRunView): readonly Act[] {
  if (run.isQueued || run.isCancelled) return []
  const isOwn = run.submitterId === user.id || may('iac.apply')
  const isOpen = run.state === 'planned' || run.state === 'partially-applied'
  return [
    ...(isOpen && may('iac.apply') ? (['apply'] as const) : []),
    ...(isOpen && isOwn ? (['replan', 'cancel'] as const) : []),
  ]
}

const texts = { apply: 'apply', cancel: 'cancel_run', replan: 'replan' } as const

export function RunPage() {
  const { data, fault, reload } = usePageView<IacRunView>('iac-run')
  const [refused, setRefused] = useState<ApiFault | null>(null)
  if (data === null) return fault === null ? <Skeleton lines={16} /> : <Fault fault={fault} onRetry={reload} />
  pageTitle.value = data.title
  const act = async (name: Act): Promise<void> => {
    const result = await send('POST', `/iac/runs/${data.id}/${name}`)
    setRefused(result.ok ? null : result.fault)
    reload()
  }
  return (
    <>
      <div class="page-head">
        <h1 class="text">{data.title}</h1>
        <RunStateMark run={data} />
        <span class="muted">
          <Time atMs={data.createdAtMs} form="when" /> {t('by_of', { name: data.submitter ?? NOTHING })}
        </span>
        <span class="grow" />
        {actsOf(data).map(name => (
          <button type="button" key={name} class={name === 'apply' ? 'primary' : ''} onClick={() => void act(name)}>
            {t(texts[name])}
          </button>
        ))}
      </div>
      <ActFault fault={refused} />
      {data.isStale ? <p class="banner">{t('stale')}</p> : null}
      {data.error === null ? null : <p class="fault text">{data.error}</p>}
      <Faults data={data} />
      <Plan data={data} />
      <Steps data={data} />
    </>
  )
}
