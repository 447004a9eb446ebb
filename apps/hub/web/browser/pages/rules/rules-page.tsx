// The rules of the company: what each says, whom it covers, what it tells now and told in the last week.
import './rules.css'
import { useState } from 'preact/hooks'
import type { RuleRow, RulesView } from '../../../views/rules.ts'
import { rulesListWords } from '../../../words/rules-list.ts'
import { shellWords } from '../../../words/shell.ts'
import { goTo, hrefTo, setParams } from '../../address/router.ts'
import { type ApiFault, send } from '../../api.ts'
import { ActFault, Fault } from '../../parts/fault.tsx'
import { FilterField, NothingMatches } from '../../parts/filter-field.tsx'
import { NoticeLine, say } from '../../parts/notice-line.tsx'
import { useSelection } from '../../parts/selection.ts'
import { Skeleton } from '../../parts/skeleton.tsx'
import { Table } from '../../parts/table.tsx'
import { textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { RulesBar } from './rule-acts.tsx'
import { ruleColumns } from './rule-columns.tsx'

const list = textsOf(rulesListWords)
const shell = textsOf(shellWords)

const STATES = ['enabled', 'disabled', 'firing', 'invalid']

export function RulesPage() {
  const { data, fault, reload } = usePageView<RulesView>('rules')
  const selection = useSelection()
  const [actFault, setActFault] = useState<ApiFault | null>(null)
  if (data === null) return fault === null ? <Skeleton lines={12} /> : <Fault fault={fault} onRetry={reload} />

  const { columns, createDefaults } = actsOf(reload, setActFault)
  const facets = { state: STATES.map(state => [state, -1] as const), ...data.facets }
  return (
    <>
      <div class="page-head">
        <h1>{list('title')}</h1>
        <span class="muted">{shell('rows_of', { count: data.matching, total: data.total })}</span>
        <NoticeLine onUndone={reload} />
        <span class="grow" />
        <button type="button" onClick={createDefaults}>
          {list('create_defaults')}
        </button>
        <a class="button primary" href={hrefTo('rule_new')}>
          {list('new_rule')}
        </a>
      </div>
      <ActFault fault={actFault} />
      {data.total === 0 ? (
        <p class="notice">{list('none_yet')}</p>
      ) : (
        <>
          <div class="toolbar">
            <FilterField facets={facets} />
          </div>
          <RulesBar selection={selection} data={data} onDone={reload} />
          {data.matching === 0 ? (
            <NothingMatches />
          ) : (
            <div class="rules-list">
              <Table<RuleRow>
                label={list('title')}
                columns={columns}
                rows={data.rows}
                keyOf={rule => rule.id}
                nameOf={rule => rule.name}
                total={data.matching}
                offset={data.offset}
                onOffset={offset => setParams({ offset: offset || null }, 'replace')}
                selection={selection}
                hrefOf={rule => hrefTo('rule', { rule: rule.id })}
              />
            </div>
          )}
        </>
      )}
    </>
  )
}

const setEnabled = ({ id }: Pick<RuleRow, 'id'>, isEnabled: boolean) =>
  send('POST', `/monitoring/rules/${id}/${isEnabled ? 'enable' : 'disable'}`)

/** What can be done with a single rule, and with the default ones. */
function actsOf(reload: () => void, setFault: (fault: ApiFault | null) => void) {
  const act = async <T,>(request: ReturnType<typeof send<T>>): Promise<T | null> => {
    const result = await request
    setFault(result.ok ? null : result.fault)
    reload()
    return result.ok ? result.body : null
  }
  const columns = ruleColumns({
    setEnabled: (rule, isEnabled) =>
      void act(setEnabled(rule, isEnabled)).then(answer => {
        if (answer !== null)
          say(list(isEnabled ? 'now_on' : 'now_off', { name: rule.name }), () => setEnabled(rule, !isEnabled))
      }),
    duplicate: rule =>
      void act(send<{ data: { id: string } }>('POST', `/monitoring/rules/${rule.id}/duplicate`)).then(copy => {
        if (copy) goTo(hrefTo('rule_edit', { rule: copy.data.id }))
      }),
  })
  const createDefaults = () =>
    void act(send<{ created: number }>('POST', '/monitoring/rules/defaults')).then(answer => {
      if (answer !== null) say(list('defaults_created', { count: answer.created }))
    })
  return { columns, createDefaults }
}
