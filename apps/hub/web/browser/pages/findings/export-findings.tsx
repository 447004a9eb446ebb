// The findings that match as a file. The hub makes it after it has been asked: that it is being made is said, then
// where it is, or that it could not be made.
import { useEffect, useState } from 'preact/hooks'
import type { FindingsView } from '../../../views/findings.ts'
import type { FindingsExportView } from '../../../views/findings-export.ts'
import { findingsWords } from '../../../words/findings.ts'
import { type ApiFault, send } from '../../api.ts'
import { fullTime } from '../../format.ts'
import { ActFault } from '../../parts/fault.tsx'
import { company, textsOf } from '../../session.ts'
import { useView } from '../../view.ts'

const t = textsOf(findingsWords)

const FORMATS = ['csv', 'jsonl'] as const
type Asked = { readonly id: string; readonly format: (typeof FORMATS)[number] }

const hrefOf = (id: string): string => `/web/findings-export/${id}?${new URLSearchParams({ company: company.slug })}`

type Ended = FindingsExportView & { readonly state: 'ready' | 'failed' }
const hasEnded = (data: FindingsExportView | null): data is Ended => data?.state === 'ready' || data?.state === 'failed'

/** Follows an export until it has ended: a file that is there is gone a day later, and nobody need ask on. */
function Following({ id, onEnd }: { readonly id: string; readonly onEnd: (data: Ended) => void }) {
  const { data, fault } = useView<FindingsExportView>('findings-export', { export: id })
  useEffect(() => {
    if (hasEnded(data)) onEnd(data)
  }, [data])
  return fault === null ? <span role="status">{t('export_made')}</span> : <ActFault fault={fault} />
}

/** What became of an export. */
function Made({ id, format }: Asked) {
  const [data, setEnded] = useState<Ended | null>(null)
  if (data === null) return <Following id={id} onEnd={setEnded} />
  if (data.state === 'failed')
    return (
      <p class="fault" role="alert">
        {t('export_failed')}
      </p>
    )
  return (
    <span role="status">
      {t('export_ready', { count: data.findings ?? 0, time: fullTime(data.expiresAtMs) })}{' '}
      <a href={hrefOf(id)} download>
        {t('export_download', { format: format === 'csv' ? 'CSV' : 'JSON' })}
      </a>
    </span>
  )
}

export function ExportFindings({ filters }: { readonly filters: FindingsView['exported'] }) {
  const [asked, setAsked] = useState<Asked | null>(null)
  const [fault, setFault] = useState<ApiFault | null>(null)
  const [isBusy, setBusy] = useState(false)
  const ask = async (format: Asked['format']): Promise<void> => {
    setBusy(true)
    const result = await send<{ data: Asked }>('POST', '/security/exports', { format, filters })
    setBusy(false)
    setFault(result.ok ? null : result.fault)
    setAsked(result.ok ? result.body.data : null)
  }
  return (
    <>
      {FORMATS.map(format => (
        <button
          type="button"
          key={format}
          disabled={isBusy || filters === null}
          title={t(filters === null ? 'export_not' : 'export_about')}
          onClick={() => void ask(format)}
        >
          {t(`export_${format}`)}
        </button>
      ))}
      {asked === null ? null : <Made key={asked.id} {...asked} />}
      <ActFault fault={fault} />
    </>
  )
}
