// The navigation at the side: only pages that the viewer may see; on a phone behind a button.
import { signal } from '@preact/signals'
import { missingKey, type PageName, pageNames, sitePages } from '../../address/site-map.ts'
import { shellWords } from '../../words/shell.ts'
import { currentPage, hrefTo } from '../address/router.ts'
import { Icon } from '../parts/icons.tsx'
import { may, textsOf } from '../session.ts'

const t = textsOf(shellWords)
const isOpen = signal(false)

const isSeen = (name: PageName): boolean => missingKey(name, may) === undefined
const sections = ['monitoring', 'security', 'infrastructure', 'administration'] as const

export const MenuButton = () => (
  <button
    type="button"
    class="quiet menu-button"
    aria-label={t('menu')}
    aria-expanded={isOpen.value}
    aria-controls="navigation"
    onClick={() => {
      isOpen.value = !isOpen.value
    }}
  >
    <Icon name="menu" />
  </button>
)

/** Whether the page is shown, or one below it. */
function isCurrent(name: PageName): boolean {
  const shown = currentPage.value
  if (shown === null) return false
  const { path } = sitePages[name]
  return shown.name === name || (path !== '/' && sitePages[shown.name].path.startsWith(`${path}/`))
}

function PageLink({ name }: { readonly name: PageName }) {
  const { key } = sitePages[name]
  return (
    <a
      href={hrefTo(name)}
      aria-current={isCurrent(name) ? 'page' : undefined}
      title={key && `g ${key}`}
      onClick={() => {
        isOpen.value = false
      }}
    >
      {t(`page_${name}`)}
    </a>
  )
}

export const Navigation = () => (
  <nav id="navigation" class={isOpen.value ? 'navigation open' : 'navigation'} aria-label={t('navigation')}>
    {sections.map(section => {
      const names = pageNames.filter(name => sitePages[name].section === section && isSeen(name))
      if (names.length === 0) return null
      return (
        <section key={section}>
          <h2>{t(`section_${section}`)}</h2>
          {names.map(name => (
            <PageLink name={name} key={name} />
          ))}
        </section>
      )
    })}
  </nav>
)
