// The rule editor: fields on the left, on the right what the draft would have told, at each change. What is typed is
// kept in the browser, and a rule that somebody else saves meanwhile is shown beside it.
import '../rule/rule.css'
import './rule-editor.css'
import { useCallback, useEffect, useLayoutEffect, useState } from 'preact/hooks'
import type { RuleEditorView, SavedRule } from '../../../views/rule-editor.ts'
import type { RulePreviewView } from '../../../views/rule-preview.ts'
import { ruleEditorWords } from '../../../words/rule-editor.ts'
import { currentSearch, goTo, hrefTo, param, pathParam } from '../../address/router.ts'
import { type ApiFault, send } from '../../api.ts'
import { whenText } from '../../format.ts'
import { nowMs } from '../../hub-clock.ts'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { SelectField, TextField } from '../../parts/field.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { textsOf } from '../../session.ts'
import { usePageView, type ViewState } from '../../view.ts'
import { ConditionFields, type FieldProps, TellingFields } from './condition-fields.tsx'
import { Conflict } from './conflict.tsx'
import { bodyOf, type Draft, differencesOf, draftOf, newDraft, textFaults } from './draft.ts'
import { forgetDraft, keepDraft, keptDraft } from './kept-draft.ts'
import { PreviewSource } from './preview-data.ts'
import { PreviewPanel } from './preview-panel.tsx'
import { ScenarioTab } from './scenario-tab.tsx'
import { ScopeFields } from './scope-fields.tsx'

const t = textsOf(ruleEditorWords)

const KINDS = ['threshold', 'check', 'agent_down'] as const

const unitOf = ({ metrics }: RuleEditorView, name: string | null): string | null =>
  metrics.find(metric => metric.name === name)?.unit ?? null

export function RuleEditorPage() {
  const ruleId = pathParam('rule')
  const key = ruleId || currentSearch().toString()
  const { data, fault, reload } = usePageView<RuleEditorView>('rule-editor')
  if (data === null) return fault === null ? <Skeleton lines={16} /> : <Fault fault={fault} onRetry={reload} />
  return <Editor key={key} ruleId={ruleId} data={data} />
}

/** `label=mount:/var`, once for each label. */
const labelsOfAddress = (): (readonly [string, string])[] =>
  currentSearch()
    .getAll('label')
    .map(text => [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1)] as const)

/** The draft, the version that it began from, and when it was kept if it was kept before. */
function useDraft(ruleId: string, { rule: saved, server, metrics }: RuleEditorView) {
  const [start] = useState(() => {
    const kept = keptDraft(ruleId)
    const known = metrics.find(metric => metric.name === param('metric'))
    const labels = labelsOfAddress().filter(([name]) => known?.labels.includes(name))
    const fresh = saved === null ? newDraft({ metric: known?.name ?? '', labels, server }) : draftOf(saved)
    return {
      draft: kept?.draft ?? fresh,
      version: kept?.version ?? saved?.row.version ?? 0,
      keptAtMs: kept?.atMs ?? null,
    }
  })
  const [draft, setDraft] = useState(start.draft)
  const [base, setBase] = useState(start.version)
  const [isTouched, setTouched] = useState(start.keptAtMs !== null)
  // Before the page is painted: one that is reloaded right after a key has kept it.
  useLayoutEffect(() => {
    if (isTouched) keepDraft(ruleId, draft, base)
  }, [ruleId, draft, base, isTouched])
  return {
    draft,
    base,
    isTouched,
    keptAtMs: start.keptAtMs,
    change: useCallback((changes: Partial<Draft>) => {
      setTouched(true)
      setDraft(before => ({ ...before, ...changes }))
    }, []),
    /** Takes the rule as it is saved; what was typed is gone. */
    take: (fresh: Draft, version: number) => {
      forgetDraft(ruleId)
      setTouched(false)
      setDraft(fresh)
      setBase(version)
    },
    keepMine: (version: number) => setBase(version),
  }
}

type Edited = ReturnType<typeof useDraft>

/** Saves the draft; `seen` is the newest version that the page knows of. */
function useSaving(ruleId: string, draft: Draft, seen: number) {
  const [fault, setFault] = useState<ApiFault | null>(null)
  const [isBusy, setBusy] = useState(false)
  const store = async (isEnabled: boolean): Promise<void> => {
    const path = ruleId === '' ? '/monitoring/rules' : `/monitoring/rules/${ruleId}`
    const newest = ruleId === '' ? null : await send<{ data: { version: number } }>('GET', path)
    // A version that the page has not seen yet: the view brings it, and the conflict is shown.
    if (newest?.ok && newest.body.data.version > seen) return
    const method = ruleId === '' ? 'POST' : 'PUT'
    const result = await send<{ data: { id: string } }>(method, path, bodyOf(draft, isEnabled))
    if (!result.ok) return setFault(result.fault)
    forgetDraft(ruleId)
    goTo(hrefTo('rule', { rule: result.body.data.id }))
  }
  const save = async (isEnabled: boolean): Promise<void> => {
    setBusy(true)
    setFault(null)
    await store(isEnabled)
    setBusy(false)
  }
  return { fault, isBusy, save }
}

/** The rule as it is saved now. Nobody's words are lost where nothing was typed, or the same was: then it is taken. */
function useSaved(saved: SavedRule | null, edited: Edited): SavedRule | null {
  const version = saved?.row.version
  useEffect(() => {
    if (saved === null || version === edited.base) return
    const theirs = draftOf(saved)
    if (!edited.isTouched || differencesOf(edited.draft, theirs).length === 0) edited.take(theirs, saved.row.version)
  }, [version])
  return saved
}

type EditorProps = { readonly ruleId: string; readonly data: RuleEditorView }

function Editor({ ruleId, data }: EditorProps) {
  const edited = useDraft(ruleId, data)
  const { draft, base, change } = edited
  const [hours, setHours] = useState(24)
  const [preview, setPreview] = useState<ViewState<RulePreviewView> | null>(null)
  const saved = useSaved(data.rule, edited)
  const version = saved?.row.version ?? 0
  const { fault, isBusy, save } = useSaving(ruleId, draft, Math.max(base, version))
  const theirs = saved && draftOf(saved)
  const hasConflict = theirs !== null && version > base && edited.isTouched && differencesOf(draft, theirs).length > 0
  const discard = (): void => {
    if (theirs !== null) edited.take(theirs, version)
    else {
      forgetDraft(ruleId)
      goTo(hrefTo('rules'))
    }
  }
  const faults = textFaults(draft)
  const canSave = !isBusy && !hasConflict && Object.keys(faults).length === 0 && draft.name.trim() !== ''
  const errorsOf = (field: string): readonly string[] => {
    const own = faults[field]
    return own === undefined ? (fault?.errors[field] ?? []) : [t(own)]
  }
  return (
    <form
      class="rule-editor"
      onSubmit={event => {
        event.preventDefault()
        if (canSave) void save(saved?.row.isEnabled ?? true)
      }}
    >
      <EditorHead saved={saved} canSave={canSave} onSaveDisabled={() => void save(false)} onDiscard={discard} />
      {edited.keptAtMs === null || !edited.isTouched ? null : (
        <p class="muted" role="status">
          {t('draft_restored', { time: whenText(edited.keptAtMs, nowMs()) })}
        </p>
      )}
      <ActFault fault={fault} />
      {hasConflict ? (
        <Conflict
          {...{ draft, theirs, base, version }}
          unit={draft.metric === theirs.metric ? unitOf(data, draft.metric) : null}
          onTakeTheirs={() => edited.take(theirs, version)}
          onKeepMine={() => edited.keepMine(version)}
        />
      ) : null}
      <div class="editor-columns">
        <LeftSide {...{ draft, change, errorsOf, data }} preview={preview?.data ?? null} />
        {draft.kind === 'agent_down' ? null : (
          <RightSide
            {...{ draft, change, hours, preview, data }}
            onHours={setHours}
            saved={theirs && { draft: theirs, version }}
          />
        )}
      </div>
      {draft.kind === 'agent_down' || draft.metric === '' ? null : (
        <PreviewSource draft={draft} hours={hours} onState={setPreview} />
      )}
    </form>
  )
}

type HeadProps = {
  readonly saved: SavedRule | null
  readonly canSave: boolean
  readonly onSaveDisabled: () => void
  readonly onDiscard: () => void
}

const EditorHead = ({ saved, canSave, onSaveDisabled, onDiscard }: HeadProps) => (
  <div class="page-head">
    <h1>{saved === null ? t('title_new') : t('title_edit', { name: saved.row.name })}</h1>
    <span class="grow" />
    <button type="submit" class="primary" disabled={!canSave}>
      {t('save')}
    </button>
    <button type="button" disabled={!canSave} onClick={onSaveDisabled}>
      {t('save_disabled')}
    </button>
    <button type="button" onClick={onDiscard}>
      {t('discard')}
    </button>
  </div>
)

type LeftProps = FieldProps & { readonly data: RuleEditorView; readonly preview: RulePreviewView | null }

const LeftSide = ({ data, preview, ...props }: LeftProps) => (
  <div class="editor-fields">
    <div class="panel">
      <TextField
        label={t('name')}
        errors={props.errorsOf('name')}
        value={props.draft.name}
        onInput={name => props.change({ name })}
        isRequired
        maxLength={255}
        autoComplete="off"
      />
      <SelectField
        label={t('kind')}
        errors={props.errorsOf('kind')}
        value={props.draft.kind}
        choices={KINDS.map(value => ({ value, text: t(`kind_${value}`) }))}
        onChange={value => props.change({ kind: KINDS.find(kind => kind === value) ?? 'threshold' })}
      />
    </div>
    {props.draft.kind === 'agent_down' ? (
      <p class="panel">{t('agent_down_text')}</p>
    ) : (
      <ConditionFields {...props} data={data} preview={preview} />
    )}
    <ScopeFields {...props} data={data} />
    <TellingFields {...props} />
    <p class="muted">{t('draft_kept')}</p>
  </div>
)

type RightProps = {
  readonly draft: Draft
  readonly change: (changes: Partial<Draft>) => void
  readonly data: RuleEditorView
  readonly saved: { readonly draft: Draft; readonly version: number } | null
  readonly hours: number
  readonly onHours: (hours: number) => void
  readonly preview: ViewState<RulePreviewView> | null
}

/** The preview, or scenarios. */
function RightSide({ draft, change, data, ...props }: RightProps) {
  const [tab, setTab] = useState<'preview' | 'scenario'>('preview')
  const [text, setText] = useState<string | null>(null)
  const unit = unitOf(data, draft.metric)
  return (
    <section class="panel editor-preview" aria-label={t('tabs')}>
      <div role="tablist" class="tabs" aria-label={t('tabs')}>
        {(['preview', 'scenario'] as const).map(each => (
          <button
            type="button"
            role="tab"
            key={each}
            id={`tab-${each}`}
            aria-selected={tab === each}
            aria-controls="editor-tab"
            onClick={() => setTab(each)}
          >
            {t(`tab_${each}`)}
          </button>
        ))}
      </div>
      <div role="tabpanel" id="editor-tab" aria-labelledby={`tab-${tab}`}>
        {tab === 'preview' ? (
          <PreviewPanel {...props} draft={draft} unit={unit} onThreshold={threshold => change({ threshold })} />
        ) : (
          <ScenarioTab draft={draft} text={text} onText={setText} />
        )}
      </div>
    </section>
  )
}
