// Adding servers: names, licence, command, arrivals. Which licence it is about stands in the address, so that a reload,
// or a colleague with the link, sees the same arrivals.
import './enroll.css'
import { useState } from 'preact/hooks'
import type { ArrivalsView } from '../../../views/arrivals.ts'
import { enrollWords } from '../../../words/enroll.ts'
import { param, setParams } from '../../address/router.ts'
import { type ApiFault, send } from '../../api.ts'
import { Fault } from '../../parts/fault.tsx'
import { Skeleton } from '../../parts/skeleton.tsx'
import { textsOf } from '../../session.ts'
import { usePageView } from '../../view.ts'
import { ArrivalsList, Command } from './arrivals-list.tsx'
import { NewLicence } from './new-licence.tsx'

const t = textsOf(enrollWords)

export function EnrollPage() {
  const { data, fault, reload } = usePageView<ArrivalsView>('arrivals')
  // By licence: the key is shown once, and is kept nowhere else.
  const [keys, setKeys] = useState<Readonly<Record<string, string>>>({})
  if (data === null) return fault === null ? <Skeleton /> : <Fault fault={fault} onRetry={reload} />
  const license = param('license')
  const show = (id: string, token: string, since: string): void => {
    setKeys(before => ({ ...before, [id]: token }))
    setParams({ license: id, since })
  }
  const newKey = async (): Promise<ApiFault | null> => {
    const result = await send<{ data: { id: string }; token: string }>(
      'POST',
      `/monitoring/licenses/${license}/regenerate`,
    )
    if (!result.ok) return result.fault
    show(result.body.data.id, result.body.token, param('since'))
    return null
  }
  return (
    <>
      <div class="page-head">
        <h1>{t('title')}</h1>
      </div>
      {license === '' ? (
        <NewLicence view={data} reload={reload} onMade={({ id, token, since }) => show(id, token, since)} />
      ) : (
        <div class="wizard">
          <Command token={keys[license] ?? null} onNewKey={newKey} />
          <ArrivalsList view={data} reload={reload} />
        </div>
      )}
    </>
  )
}
