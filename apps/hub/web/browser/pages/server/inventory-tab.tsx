// What the agent reports that a server is made of, how its record differs, and taking fields over into the record.
import { useSignal } from '@preact/signals'
import type { InventoryView } from '../../../views/server/records.ts'
import { serverTabWords } from '../../../words/server-tabs.ts'
import { shellWords } from '../../../words/shell.ts'
import { type ApiFault, send } from '../../api.ts'
import { fullTime } from '../../format.ts'
import { Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { may, textsOf } from '../../session.ts'
import { useView } from '../../view.ts'
import type { TabProps } from './late-props.ts'

const t = textsOf(serverTabWords)
const common = textsOf(shellWords)

const fieldText = (field: string): string =>
  Object.hasOwn(serverTabWords, `field_${field}`) ? t(`field_${field}` as keyof typeof serverTabWords) : field

const shownValue = (value: string | number | null | readonly string[]): string =>
  value === null || value === '' ? t('nothing') : typeof value === 'object' ? value.join(', ') : String(value)

/** Each field with a box, for who may take it over. */
function DifferenceTable({
  differences,
  chosen,
  onToggle,
}: {
  readonly differences: InventoryView['differences']
  readonly chosen: ReadonlySet<string>
  readonly onToggle: ((field: string) => void) | null
}) {
  return (
    <div class="server-table">
      <table class="table">
        <thead>
          <tr>
            {onToggle !== null ? (
              <th scope="col" class="select">
                <span class="visually-hidden">{t('apply')}</span>
              </th>
            ) : null}
            <th scope="col">{t('field')}</th>
            <th scope="col">{t('in_record')}</th>
            <th scope="col">{t('as_reported')}</th>
          </tr>
        </thead>
        <tbody>
          {differences.map(({ field, serverValue, inventoryValue }) => (
            <tr key={field}>
              {onToggle !== null ? (
                <td class="select">
                  <input
                    type="checkbox"
                    aria-label={t('take_over', { field: fieldText(field) })}
                    checked={chosen.has(field)}
                    onChange={() => onToggle(field)}
                  />
                </td>
              ) : null}
              <th scope="row">{fieldText(field)}</th>
              <td data-title={t('in_record')}>{shownValue(serverValue)}</td>
              <td data-title={t('as_reported')}>{shownValue(inventoryValue)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Differences({
  serverId,
  inventory,
  onApplied,
}: {
  readonly serverId: string
  readonly inventory: InventoryView
  readonly onApplied: () => void
}) {
  const chosen = useSignal<ReadonlySet<string>>(new Set())
  const fault = useSignal<ApiFault | null>(null)
  const isBusy = useSignal(false)
  const { differences, canApply } = inventory
  const canChoose = canApply && may('servers.manage')
  const toggle = (field: string) => {
    const next = new Set(chosen.value)
    if (!next.delete(field)) next.add(field)
    chosen.value = next
  }
  const apply = async () => {
    isBusy.value = true
    const result = await send('POST', `/servers/${serverId}/inventory/apply`, { fields: [...chosen.value] })
    isBusy.value = false
    fault.value = result.ok ? null : result.fault
    if (!result.ok) return
    chosen.value = new Set()
    onApplied()
  }
  if (differences.length === 0) return <p>{t('no_differences')}</p>
  return (
    <>
      {canApply ? null : <p class="muted">{t('iac_origin')}</p>}
      <DifferenceTable differences={differences} chosen={chosen.value} onToggle={canChoose ? toggle : null} />
      {canChoose ? (
        <p>
          <button type="button" class="primary" disabled={isBusy.value || chosen.value.size === 0} onClick={apply}>
            {t('apply')}
          </button>
        </p>
      ) : null}
      {fault.value === null ? null : (
        <p class="fault" role="alert">
          {common('not_done', { message: fault.value.message })}
        </p>
      )}
    </>
  )
}

function FactList({ facts }: { readonly facts: InventoryView['facts'] }) {
  const find = useSignal('')
  const words = find.value.trim().toLowerCase()
  const shown = facts.filter(([name, value]) => `${name} ${value}`.toLowerCase().includes(words))
  return (
    <>
      <input
        type="search"
        aria-label={t('find_fact')}
        placeholder={t('find_fact')}
        value={find.value}
        onInput={event => {
          find.value = event.currentTarget.value
        }}
      />
      <dl class="fact-list">
        {shown.map(([name, value]) => (
          <div key={name}>
            <dt class="mono">{name}</dt>
            <dd class="text">{value}</dd>
          </div>
        ))}
      </dl>
    </>
  )
}

export function InventoryTab({ serverId, onChanged }: TabProps) {
  const view = useView<InventoryView>('server-inventory', { server: serverId })
  if (view.data === null) return view.fault === null ? <Skeleton /> : <Fault fault={view.fault} onRetry={view.reload} />
  const { reportedAtMs, facts } = view.data
  if (reportedAtMs === null) return <p>{t('no_inventory')}</p>
  const applied = () => {
    view.reload()
    onChanged()
  }
  return (
    <>
      <p class="muted">{t('reported', { time: fullTime(reportedAtMs) })}</p>
      <section aria-labelledby="differences">
        <h2 id="differences">{t('differences')}</h2>
        <Differences serverId={serverId} inventory={view.data} onApplied={applied} />
      </section>
      <section aria-labelledby="facts">
        <h2 id="facts">{t('facts')}</h2>
        <FactList facts={facts} />
      </section>
    </>
  )
}
