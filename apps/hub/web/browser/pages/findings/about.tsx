// What reference data say of a vulnerability.
import type { FindingView } from '../../../views/finding.ts'
import { findingsWords } from '../../../words/findings.ts'
import { textsOf } from '../../session.ts'

const t = textsOf(findingsWords)

/** What reference data say is somebody else's text: only an address of the web becomes a link. */
const isWebAddress = (text: string): boolean => /^https?:\/\//i.test(text)

type Props = Pick<FindingView, 'description' | 'references'>

export const About = ({ description, references }: Props) => (
  <section class="panel">
    <h2>{t('about')}</h2>
    <p class="text">{description ?? t('no_description')}</p>
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
