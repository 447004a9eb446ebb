// One resource in one look: what is wrong with it, its fields, what the hub found out, and what was done with it.
import '../../resources-kit.ts'
import { useState } from 'preact/hooks'
import type { ResourceView } from '../../../views/resource-pages.ts'
import { infrastructureWords } from '../../../words/infrastructure.ts'
import { goTo, hrefTo } from '../../address/router.ts'
import { type ApiFault, type ApiResult, send } from '../../api.ts'
import { count } from '../../format.ts'
import { pageTitle } from '../../frame/page-title.ts'
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { Time } from '../../parts/time.tsx'
import { language, textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import '../alert/alert.css'
import './infrastructure.css'
import { fieldTitle, NameOf, Value } from '../../parts/resource-value.tsx'
import { ResourceForm } from './resource-form.tsx'

const t = textsOf(infrastructureWords)

const Problems = ({ conditions }: ResourceView) =>
  conditions.length === 0 ? null : (
    <section class="panel">
      <h2>{t('problems')}</h2>
      <ol class="plain story">
        {conditions.map(({ code, severity, message, sinceMs }) => (
          <li key={code}>
            <Time atMs={sinceMs} form="when" />
            <span class="text">
              <StateMark state={severity} /> {message[language]}
            </span>
          </li>
        ))}
      </ol>
    </section>
  )

const Facts = ({ data }: { readonly data: ResourceView }) => (
  <section class="panel">
    <h2>{t('fields')}</h2>
    <dl class="facts">
      {data.fields
        .filter(({ name }) => name !== 'name')
        .map(({ name, form }) => (
          <>
            <dt>{fieldTitle(name)}</dt>
            <dd>
              {form === 'secret' ? (
                t(data.values[`${name}_set`] === true ? 'secret_set' : 'not_set')
              ) : (
                <Value value={data.values[name]} field={name} names={data.names} />
              )}
            </dd>
          </>
        ))}
      <dt>{t('origin')}</dt>
      <dd>{data.origin}</dd>
      <dt>{t('version')}</dt>
      <dd>{count(data.version)}</dd>
      <dt>{t('created')}</dt>
      <dd>
        <Time atMs={data.createdAtMs} form="when" />
      </dd>
      <dt>{t('updated')}</dt>
      <dd>
        <Time atMs={data.updatedAtMs} form="when" />
      </dd>
    </dl>
  </section>
)

function Known({ data: { derived, names } }: { readonly data: ResourceView }) {
  const members = Object.entries(derived)
  if (members.length === 0) return null
  return (
    <section class="panel">
      <h2>{t('known')}</h2>
      <dl class="facts">
        {members.map(([name, value]) => (
          <>
            <dt>{fieldTitle(name)}</dt>
            <dd>
              <Value value={value} field={name} names={names} />
            </dd>
          </>
        ))}
      </dl>
    </section>
  )
}

const Drift = ({ drift }: ResourceView) =>
  drift.length === 0 ? null : (
    <section class="panel">
      <h2>{t('drift')}</h2>
      <Value value={drift} />
    </section>
  )

const Runs = ({ runs }: ResourceView) =>
  runs.length === 0 ? null : (
    <section class="panel">
      <h2>{t('runs')}</h2>
      <ol class="plain story">
        {runs.map(({ id, action, state, queuedAtMs, error }) => (
          <li key={id}>
            <Time atMs={queuedAtMs} form="when" />
            <span class="text">
              <strong>{action}</strong> {state} {error ?? ''}
            </span>
          </li>
        ))}
      </ol>
    </section>
  )

const Changes = ({ changes }: ResourceView) =>
  changes === null ? null : (
    <section class="panel">
      <h2>{t('changes')}</h2>
      {changes.length === 0 ? <p class="muted">{t('no_changes')}</p> : null}
      <ol class="plain story">
        {changes.map(({ id, atMs, actor, action, fields }) => (
          <li key={id}>
            <Time atMs={atMs} form="when" />
            <span class="text">
              <strong>{action}</strong> {actor ?? t('system')}{' '}
              <span class="muted">{fields.map(fieldTitle).join(', ')}</span>
            </span>
          </li>
        ))}
      </ol>
    </section>
  )

type Act = 'edit' | 'delete'

type ActsProps = {
  readonly data: ResourceView
  readonly onAct: (act: Act) => void
  readonly onRestore: () => void
  readonly onPost: (act: string) => void
}

function Acts({ data, onAct, onRestore, onPost }: ActsProps) {
  if (data.isDeleted)
    return data.mayManage ? (
      <button type="button" class="primary" onClick={onRestore}>
        {t('restore')}
      </button>
    ) : null
  return (
    <>
      {data.acts.map(act => (
        <button type="button" key={act} onClick={() => onPost(act)}>
          {fieldTitle(act)}
        </button>
      ))}
      {data.mayManage ? (
        <button type="button" onClick={() => onAct('edit')}>
          {t('edit')}
        </button>
      ) : null}
      {data.mayDelete ? (
        <button type="button" class="danger" onClick={() => onAct('delete')}>
          {t('delete')}
        </button>
      ) : null}
    </>
  )
}

type DialogsProps = { data: ResourceView; act: Act | null; onClose: () => void; onDone: () => void }

function Dialogs({ data, act, onClose, onDone }: DialogsProps) {
  if (act === 'edit')
    return (
      <ResourceForm
        title={t('edit_of', { name: data.name })}
        fields={data.form}
        path={data.path}
        existing={{ values: data.values, version: data.version }}
        names={data.names}
        onClose={onClose}
        onDone={onDone}
      />
    )
  if (act === null) return null
  const remove = async (): Promise<ApiFault | null> => {
    const result = await send('DELETE', data.path)
    return result.ok ? null : result.fault
  }
  const listed = data.parent === null ? {} : { parent: data.parent.id }
  return (
    <ConfirmDialog
      title={t('delete_of', { name: data.name })}
      typed={null}
      act={t('delete')}
      onConfirm={remove}
      onClose={onClose}
      onDone={() => goTo(hrefTo('resources', { kind: data.kind }, listed), 'replace')}
    >
      <p>{t('delete_text')}</p>
    </ConfirmDialog>
  )
}

export function ResourcePage() {
  const { data, fault, reload } = usePageView<ResourceView>('resource')
  const [act, setAct] = useState<Act | null>(null)
  const [refused, setRefused] = useState<ApiFault | null>(null)
  if (data === null) return fault === null ? <Skeleton lines={16} /> : <Fault fault={fault} onRetry={reload} />
  pageTitle.value = data.name
  const told = (result: ApiResult): void => {
    setRefused(result.ok ? null : result.fault)
    reload()
  }
  const restore = async (): Promise<void> => told(await send('PATCH', data.path, { deleted_at: null }))
  const post = async (act: string): Promise<void> => told(await send('POST', `${data.path}/${act}`))
  return (
    <>
      <div class="page-head">
        <h1 class="text">{data.name}</h1>
        <StateMark state={data.health} />
        <span class="muted">{data.status}</span>
        <span class="grow" />
        <Acts data={data} onAct={setAct} onRestore={() => void restore()} onPost={act => void post(act)} />
      </div>
      <p>
        <a class="kind-name" href={hrefTo('resources', { kind: data.kind }, { parent: data.parent?.id ?? null })}>
          {data.title.many[language]}
        </a>
        {data.parent === null ? null : (
          <>
            {' · '}
            <NameOf named={data.parent} />
          </>
        )}
        {data.parts.map(part => (
          <span key={part.kind}>
            {' · '}
            <a href={hrefTo('resources', { kind: part.kind }, { parent: data.id })}>{part.title[language]}</a>
          </span>
        ))}
      </p>
      {data.isDeleted ? <p class="banner">{t('in_trash')}</p> : null}
      <ActFault fault={refused} />
      <div class="resource-panels">
        <Problems {...data} />
        <Facts data={data} />
        <Known data={data} />
        <Drift {...data} />
        <Runs {...data} />
        <Changes {...data} />
      </div>
      <Dialogs
        data={data}
        act={act}
        onClose={() => setAct(null)}
        onDone={() => {
          setAct(null)
          reload()
        }}
      />
    </>
  )
}
