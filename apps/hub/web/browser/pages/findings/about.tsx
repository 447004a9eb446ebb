// What reference data say of a vulnerability.
import { useState } from 'preact/hooks'
import type { FindingView } from '../../../views/finding.ts'
import { findingsWords } from '../../../words/findings.ts'
import { textsOf } from '../../session.ts'

const t = textsOf(findingsWords)

/** What reference data say is somebody else's text: only an address of the web becomes a link. */
const isWebAddress = (text: string): boolean => /^https?:\/\//i.test(text)

/** A longer one is cut until it is asked for: what follows it on the page is not pushed out of sight. */
const SHOWN_CHARS = 600

function Description({ text }: { readonly text: string }) {
  const [isWhole, setWhole] = useState(false)
  if (isWhole || text.length <= SHOWN_CHARS) return <p class="text">{text}</p>
  return (
    <>
      <p class="text">{text.slice(0, SHOWN_CHARS).toWellFormed()} …</p>
      <button type="button" onClick={() => setWhole(true)}>
        {t('whole_text')}
      </button>
    </>
  )
}

type Props = Pick<FindingView, 'description' | 'references'>

export const About = ({ description, references }: Props) => (
  <section class="panel">
    <h2>{t('about')}</h2>
    <Description text={description ?? t('no_description')} />
    {references.length === 0 ? null : (
      <>
        <h3>{t('references')}</h3>
        <ul class="plain">
          {references.map(reference => (
            <li key={reference} class="text">
              {isWebAddress(reference) ? (
                <a href={reference} rel="noreferrer noopener" target="_blank">
                  {reference}
                </a>
              ) : (
                reference
              )}
            </li>
          ))}
        </ul>
      </>
    )}
  </section>
)
