// The tags of something; a press on one filters by it.
import { toggledTerm } from '../../address/filter-language.ts'
import { param, setParams } from '../address/router.ts'

export const Tags = ({ tags }: { readonly tags: readonly string[] }) => (
  <span class="tags">
    {tags.map(tag => (
      <button
        type="button"
        class="tag"
        key={tag}
        onClick={() => setParams({ q: toggledTerm(param('q'), 'tag', tag), offset: null })}
      >
        {tag}
      </button>
    ))}
  </span>
)
