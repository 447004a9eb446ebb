// The script of every page: draws the frame and the page that the address names, and keeps both up to date.
import './looks/tokens.css'
import './looks/base.css'
import './looks/forms.css'
import './looks/parts.css'
// What nearly every page is made of comes with the first file: a page then loads one more, its own.
import './parts/dialog.tsx'
import './parts/field.tsx'
import './parts/filter-field.tsx'
import './parts/meter.tsx'
import './parts/state-mark.tsx'
import './parts/table.tsx'
import './parts/tags.tsx'
import './parts/time.tsx'
import './view.ts'
import { render } from 'preact'
import { currentPage, startRouter } from './address/router.ts'
import { startLive } from './connection/live.ts'
import { App, loadPage } from './frame/app.tsx'
import { startPreferences } from './frame/preferences.ts'

startPreferences()
startRouter()
startLive()

// The first picture is the whole page: nothing moves when its file has come.
const page = currentPage.value
if (page !== null) await loadPage(page.name).catch(() => {})
const root = document.getElementById('app')
if (root !== null) {
  root.replaceChildren()
  render(<App />, root)
}
