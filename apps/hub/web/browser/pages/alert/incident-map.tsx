// The servers of an incident as a map, by data centre: which are lost still, and which are back. Loaded when an alert
// is an incident, with the file of what pages share, as every page: the bundler would else cut that in two.
import '../../view.ts'
import { useMemo, useState } from 'preact/hooks'
import { NO_LEVEL } from '../../../cell-characters.ts'
import type { IncidentMap } from '../../../views/alert.ts'
import { incidentMapWords } from '../../../words/incident-map.ts'
import { mapWords } from '../../../words/map.ts'
import { goTo, hrefTo } from '../../address/router.ts'
import { HostMap } from '../../parts/host-map/host-map.tsx'
import { StateMark } from '../../parts/state-mark.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(incidentMapWords)
const map = textsOf(mapWords)

export function MapOfIncident({ data }: { readonly data: IncidentMap }) {
  const [cell, setCell] = useState<number | null>(null)
  const groups = useMemo(
    () =>
      data.groups.map(({ datacenter, marks }) => ({
        captions: [map('caption', { name: datacenter === '' ? map('without') : datacenter, count: marks.length })],
        // A cell has a mark, and no value that would fill it.
        levels: NO_LEVEL.repeat(marks.length),
        marks,
      })),
    [data],
  )
  const server = cell === null ? undefined : data.servers[cell]
  const isDown = cell !== null && groups.map(({ marks }) => marks).join('')[cell] === 'd'
  const open = (at: number): void => {
    const opened = data.servers[at]
    if (opened !== undefined) goTo(hrefTo('server', { server: opened.id }))
  }
  return (
    <section class="panel" aria-labelledby="incident-map">
      <h2 id="incident-map">{t('incident_map')}</h2>
      <p>{t('incident_down', { down: data.down, count: data.servers.length + data.leftOut })}</p>
      {data.leftOut > 0 ? <p class="muted">{t('incident_left_out', { count: data.leftOut })}</p> : null}
      <div class="map-cell" id="map-cell" role="status">
        {server === undefined ? (
          <span class="muted">{t('incident_hint')}</span>
        ) : (
          <>
            <strong>
              <a class="text" href={hrefTo('server', { server: server.id })}>
                {server.name}
              </a>
            </strong>
            {isDown ? <StateMark state="down" /> : <span>{t('incident_back')}</span>}
          </>
        )}
      </div>
      <HostMap
        label={t('incident_map_label', { count: data.servers.length })}
        groups={groups}
        cell={cell}
        onCell={setCell}
        onOpen={open}
        onCaption={() => {}}
      />
    </section>
  )
}
