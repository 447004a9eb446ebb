// What a plan would change of a resource: each field with what it is and what it would be.
import { manifestsWords } from '../../../words/manifests.ts'
import { fieldTitle, Value } from '../../parts/resource-value.tsx'
import { textsOf } from '../../session.ts'

const t = textsOf(manifestsWords)

type Changed = { readonly field: string; readonly old: unknown; readonly new: unknown }

export const ChangedFields = ({ diff }: { readonly diff: readonly Changed[] }) =>
  diff.length === 0 ? (
    <p class="muted">{t('no_diff')}</p>
  ) : (
    <div class="value-rows">
      <table>
        <thead>
          <tr>
            <th scope="col">{t('field')}</th>
            <th scope="col">{t('before')}</th>
            <th scope="col">{t('after')}</th>
          </tr>
        </thead>
        <tbody>
          {diff.map(({ field, old, new: next }) => (
            <tr key={field}>
              <td>{fieldTitle(field)}</td>
              <td>
                <Value value={old} field={field} />
              </td>
              <td>
                <Value value={next} field={field} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
