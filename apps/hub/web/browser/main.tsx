// The script of every page: draws the frame and the page that the address names, and keeps both up to date.
import './looks/tokens.css'
import './looks/base.css'
import './looks/forms.css'
import './looks/parts.css'
import './looks/print.css'
import { render } from 'preact'
import { currentPage, startRouter } from './address/router.ts'
import { startLive } from './connection/live.ts'
import { App, loadPage } from './frame/app.tsx'
import { startTitle } from './frame/page-title.ts'
import { startPreferences } from './frame/preferences.ts'
import { startKeys } from './keys.ts'

startPreferences()
startRouter()
startLive()
startKeys()
startTitle()

// The first picture is the whole page: nothing moves when its file has come.
const page = currentPage.value
if (page !== null) await loadPage(page.name).catch(() => {})
const root = document.getElementById('app')
if (root !== null) {
  root.replaceChildren()
  render(<App />, root)
}
