// What pages of administration share, in one file for all of them, as kit.ts is for all pages.
import '../words/administration.ts'
import './pages/administration/check-list.tsx'
import './pages/administration/name-field.tsx'
import './pages/administration/permission-groups.ts'
import './pages/administration/webhook-dialog.tsx'
import './pages/administration/webhook-state.tsx'
