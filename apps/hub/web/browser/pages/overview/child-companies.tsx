// The companies below this one that the viewer may work in: their servers, what is open, how full their plan is. Each
// is asked for by itself, under the viewer's rights in it.
import type { ComponentChildren } from 'preact'
import type { CompanyBrief } from '../../../views/overview.ts'
import { overviewWords } from '../../../words/overview.ts'
import { count, NOTHING } from '../../format.ts'
import { StateMark } from '../../parts/state-mark.tsx'
import { children as below, textsOf } from '../../session.ts'
import { useViewOfCompany } from '../../view.ts'

const t = textsOf(overviewWords)

/** Each is followed over the one stream, which follows forty views at most. */
const SHOWN = 20

type Child = (typeof below)[number]

const Troubled = ({ state, number }: { readonly state: 'critical' | 'warning' | 'down'; readonly number: number }) =>
  number === 0 ? <span class="muted">{count(0)}</span> : <StateMark state={state} text={count(number)} />

const agentsText = ({ quota: { used, max } }: CompanyBrief): string =>
  max === null ? count(used) : t('used_of', { used, max })

function Row({ child }: { readonly child: Child }) {
  const { data } = useViewOfCompany<CompanyBrief>(child.slug, 'company-brief')
  const base = `/c/${encodeURIComponent(child.slug)}`
  const cell = (make: (brief: CompanyBrief) => ComponentChildren) => (data === null ? NOTHING : make(data))
  return (
    <tr>
      <th scope="row" class="text">
        <a href={`${base}/`}>{child.name}</a>
      </th>
      <td>{cell(({ counts }) => count(counts.all))}</td>
      <td>
        {cell(({ counts }) => (
          <Troubled state="down" number={counts.down} />
        ))}
      </td>
      <td>{cell(({ incidents }) => count(incidents))}</td>
      <td>
        {cell(({ unacknowledged }) => (
          <Troubled state="critical" number={unacknowledged.critical} />
        ))}
      </td>
      <td>
        {cell(({ unacknowledged }) => (
          <Troubled state="warning" number={unacknowledged.warning} />
        ))}
      </td>
      <td>{cell(agentsText)}</td>
    </tr>
  )
}

const HEADS = ['company', 'servers', 'down', 'incidents', 'critical', 'warning', 'agents'] as const

export function ChildCompanies() {
  if (below.length === 0) return null
  return (
    <section class="panel" aria-labelledby="companies">
      <h2 id="companies">{t('companies')}</h2>
      <div class="scroll-x">
        <table class="plain-table child-companies">
          <thead>
            <tr>
              {HEADS.map(head => (
                <th scope="col" key={head}>
                  {t(head)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {below.slice(0, SHOWN).map(child => (
              <Row child={child} key={child.slug} />
            ))}
          </tbody>
        </table>
      </div>
      {below.length > SHOWN ? <p class="muted">{t('more_companies', { count: below.length - SHOWN })}</p> : null}
    </section>
  )
}
