// What the hub wrote into the page for the script: language, company, permissions; and the texts in that language.
import { say, type WebLanguage, type WebParams, type WebText } from '../web-texts.ts'

export const language: WebLanguage = document.documentElement.lang === 'vi' ? 'vi' : 'en'
export const companyId = document.body.dataset.company ?? ''
export const csrfToken = document.body.dataset.csrf ?? ''
export const mayManage = document.body.dataset.mayManage === 'true'
export const mayAdd = document.body.dataset.mayAdd === 'true'
/** Where agents report. */
export const agentUrl = document.body.dataset.agentUrl ?? ''

export const t = (key: WebText, params?: WebParams): string => say(language, key, params)

/** An element that the hub's page has. */
export function byId(id: string): HTMLElement {
  const element = document.getElementById(id)
  if (!element) throw new Error(`the page has no element ${id}`)
  return element
}
