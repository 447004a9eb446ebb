// The findings that match as a file. The hub makes it after it has been asked: that it is being made is said, then
// where it is, or that it could not be made.
import { useState } from 'preact/hooks'
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

/** What became of an export. */
function Made({ id, format }: Asked) {
  const { data, fault } = useView<FindingsExportView>('findings-export', { export: id })
  if (fault !== null) return <ActFault fault={fault} />
  if (data?.state === 'failed')
    return (
      <p class="fault" role="alert">
        {t('export_failed')}
      </p>
    )
  return (
    <span role="status">
      {data?.state === 'ready' ? (
        <>
          {t('export_ready', { count: data.findings ?? 0, time: fullTime(data.expiresAtMs) })}{' '}
          <a href={hrefOf(id)} download>
            {t('export_download', { format: format === 'csv' ? 'CSV' : 'JSON' })}
          </a>
        </>
      ) : (
        t('export_made')
      )}
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
