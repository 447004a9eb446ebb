// What pages of resources, manifests and approvals share, in one file for all of them, as kit.ts is for all pages.
import '../words/infrastructure.ts'
import '../words/manifests.ts'
import './pages/infrastructure/resource-form.tsx'
import './pages/manifests/changed-fields.tsx'
import './pages/manifests/run-state.tsx'
import './parts/resource-value.tsx'
