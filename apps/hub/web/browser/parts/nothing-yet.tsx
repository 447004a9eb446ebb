// Said where there is nothing yet because no server has been added, with the button that changes it.
import { shellWords } from '../../words/shell.ts'
import { hrefTo } from '../address/router.ts'
import { may, textsOf } from '../session.ts'

const t = textsOf(shellWords)

export const NothingYet = ({ text }: { readonly text: string }) => (
  <div class="notice">
    <p>{text}</p>
    {may('monitoring.manage') ? (
      <a class="button primary" href={hrefTo('add_servers')}>
        {t('page_add_servers')}
      </a>
    ) : null}
  </div>
)
