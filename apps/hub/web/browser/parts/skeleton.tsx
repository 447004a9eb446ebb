// What stands in a page's place until its first data has come: of the final size, and not before 150 ms have passed,
// which the style sees to.
import { shellWords } from '../../words/shell.ts'
import { textsOf } from '../session.ts'

const t = textsOf(shellWords)

export const Skeleton = ({ lines = 8 }: { readonly lines?: number }) => (
  <div class="skeleton" role="status" aria-label={t('loading')}>
    {Array.from({ length: lines }, (_, line) => (
      <div class="skeleton-line" key={line} />
    ))}
  </div>
)
