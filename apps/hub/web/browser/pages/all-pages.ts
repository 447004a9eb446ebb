// Which file draws which page; loaded when it is first shown. The compiler tells when a page of the site map is
// missing.
import type { ComponentType } from 'preact'
import type { PageName } from '../../address/site-map.ts'
import { param } from '../address/router.ts'
import { lateParts } from '../late-parts.ts'

type Load = () => Promise<ComponentType>

const ruleEditor: Load = async () => (await import('./rule-editor/rule-editor-page.tsx')).RuleEditorPage

/** With the map, where the address asks for it: nothing moves when it comes. */
const servers: Load = async () => {
  const isMap = param('view') === 'map'
  const [page] = await Promise.all([import('./servers/servers-page.tsx'), isMap ? lateParts.serverMap?.() : null])
  if (isMap) await page.map.isThere()
  return page.ServersPage
}

/** With the tab that the address names. */
const server: Load = async () => {
  const page = await import('./server/server-page.tsx')
  await page.shownTabIsThere()
  return page.ServerPage
}

/** With the map of an incident, where the document's own data has one. */
const alert: Load = async () => {
  const page = await import('./alert/alert-page.tsx')
  await page.firstMapIsThere()
  return page.AlertPage
}

export const pageFiles: Readonly<Record<PageName, Load>> = {
  overview: async () => (await import('./overview/overview-page.tsx')).OverviewPage,
  check: async () => (await import('./checks/check-page.tsx')).CheckPage,
  checks: async () => (await import('./checks/checks-page.tsx')).ChecksPage,
  agents: async () => (await import('./agents/agents-page.tsx')).AgentsPage,
  licenses: async () => (await import('./licenses/licenses-page.tsx')).LicensesPage,
  add_servers: async () => (await import('./enroll/enroll-page.tsx')).EnrollPage,
  compare: async () => (await import('./compare/compare-page.tsx')).ComparePage,
  alerts: async () => (await import('./alerts/alerts-page.tsx')).AlertsPage,
  alert,
  silences: async () => (await import('./silences/silences-page.tsx')).SilencesPage,
  findings: async () => (await import('./findings/findings-page.tsx')).FindingsPage,
  finding: async () => (await import('./findings/finding-page.tsx')).FindingPage,
  vulnerability: async () => (await import('./findings/vulnerability-page.tsx')).VulnerabilityPage,
  exceptions: async () => (await import('./findings/exceptions-page.tsx')).ExceptionsPage,
  infrastructure: async () => (await import('./infrastructure/infrastructure-page.tsx')).InfrastructurePage,
  resources: async () => (await import('./infrastructure/resources-page.tsx')).ResourcesPage,
  resource: async () => (await import('./infrastructure/resource-page.tsx')).ResourcePage,
  iac: async () => (await import('./manifests/runs-page.tsx')).RunsPage,
  iac_run: async () => (await import('./manifests/run-page.tsx')).RunPage,
  approvals: async () => (await import('./manifests/approvals-page.tsx')).ApprovalsPage,
  people: async () => (await import('./administration/people-page.tsx')).PeoplePage,
  roles: async () => (await import('./administration/roles-page.tsx')).RolesPage,
  notifications: async () => (await import('./administration/notifications-page.tsx')).NotificationsPage,
  webhooks: async () => (await import('./administration/webhooks-page.tsx')).WebhooksPage,
  webhook: async () => (await import('./administration/webhook-page.tsx')).WebhookPage,
  audit: async () => (await import('./administration/audit-page.tsx')).AuditPage,
  settings: async () => (await import('./administration/settings-page.tsx')).SettingsPage,
  account: async () => (await import('./account/account-page.tsx')).AccountPage,
  system: async () => (await import('./administration/system-page.tsx')).SystemPage,
  servers,
  server,
  rules: async () => (await import('./rules/rules-page.tsx')).RulesPage,
  rule_new: ruleEditor,
  rule: async () => (await import('./rule/rule-page.tsx')).RulePage,
  rule_edit: ruleEditor,
}

lateParts.incidentMap = async () => (await import('./alert/incident-map.tsx')).MapOfIncident
lateParts.channel = async () => (await import('./administration/channel-dialog.tsx')).ChannelDialog
lateParts.check = async () => (await import('./checks/check-dialog.tsx')).CheckDialog
lateParts.exception = async () => (await import('./findings/exception-dialog.tsx')).ExceptionDialog
lateParts.silence = async () => (await import('../parts/silence-dialog.tsx')).SilenceDialog
lateParts.serverMap = async () => (await import('./servers/servers-as-map.tsx')).ServersAsMap
lateParts.serverActs = async () => (await import('./servers/server-acts.tsx')).ServerActDialog
lateParts.firstCharts = async () => (await import('./overview/first-charts.tsx')).FirstCharts
lateParts.palette = async () => (await import('../frame/palette.tsx')).Palette
lateParts.keys = async () => (await import('../frame/key-help.tsx')).KeyHelp
lateParts.views = async () => (await import('../frame/saved-views-dialog.tsx')).SavedViewsDialog
lateParts.columns = async () => (await import('./servers/columns-dialog.tsx')).ColumnsDialog
lateParts.serverTabs = async () => (await import('./server/late-tabs.tsx')).LateTabs
lateParts.serverDialog = async () => (await import('./server/server-dialogs.tsx')).ServerDialog
