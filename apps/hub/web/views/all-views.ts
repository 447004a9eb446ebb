// The views by name: the one line that a new view needs besides its file.
import { agentsView } from './agents.ts'
import { alertView } from './alert.ts'
import { alertsView, matchingAlertsView } from './alerts.ts'
import { approvalsView } from './approvals.ts'
import { arrivalsView } from './arrivals.ts'
import { auditView } from './audit.ts'
import { checkView } from './check.ts'
import { checkDaysView, checksView } from './checks.ts'
import { compareView } from './compare.ts'
import { exceptionsView } from './exceptions.ts'
import { findingView } from './finding.ts'
import { findingsByServerView, findingsView, matchingFindingsView } from './findings.ts'
import { findingsExportView } from './findings-export.ts'
import { hostMapView, mapCellsView } from './host-map.ts'
import { iacRunsView, iacRunView } from './iac-runs.ts'
import { infrastructureView } from './infrastructure.ts'
import { licensesView } from './licenses.ts'
import { resourceChoicesView } from './named-resources.ts'
import { notificationsView } from './notifications.ts'
import { companyBriefView, overviewView } from './overview.ts'
import { paletteView } from './palette.ts'
import { peopleView, rolesView } from './people.ts'
import { pulseView } from './pulse.ts'
import { resourceView } from './resource.ts'
import { resourcesView } from './resources.ts'
import { ruleView } from './rule.ts'
import { ruleEditorView } from './rule-editor.ts'
import { ruleHistoryView } from './rule-history.ts'
import { rulePreviewView } from './rule-preview.ts'
import { rulesView } from './rules.ts'
import { serverAlertsView, serverDecisionsView } from './server/alerts.ts'
import { serverChangesView } from './server/changes.ts'
import { serverChartsView } from './server/charts.ts'
import { serverView } from './server/head.ts'
import { serverAgentsView, serverChecksView, serverHistoryView, serverInventoryView } from './server/records.ts'
import { serverPackagesView, serverSecurityView } from './server/security.ts'
import { serverSeriesView } from './server/series.ts'
import { matchingServersView, serversView } from './servers.ts'
import { settingsView } from './settings.ts'
import { silencesView } from './silences.ts'
import type { View } from './view.ts'
import { vulnerabilityView } from './vulnerability.ts'
import { webhooksView, webhookView } from './webhooks.ts'

export const views: Readonly<Record<string, View>> = {
  agents: agentsView,
  approvals: approvalsView,
  arrivals: arrivalsView,
  audit: auditView,
  check: checkView,
  'company-brief': companyBriefView,
  'check-days': checkDaysView,
  checks: checksView,
  compare: compareView,
  exceptions: exceptionsView,
  finding: findingView,
  findings: findingsView,
  'findings-by-server': findingsByServerView,
  'findings-export': findingsExportView,
  'iac-run': iacRunView,
  'iac-runs': iacRunsView,
  infrastructure: infrastructureView,
  licenses: licensesView,
  alert: alertView,
  alerts: alertsView,
  'matching-findings': matchingFindingsView,
  'matching-alerts': matchingAlertsView,
  'matching-servers': matchingServersView,
  notifications: notificationsView,
  overview: overviewView,
  palette: paletteView,
  people: peopleView,
  pulse: pulseView,
  'server-agents': serverAgentsView,
  'server-alerts': serverAlertsView,
  'server-changes': serverChangesView,
  'server-charts': serverChartsView,
  'server-checks': serverChecksView,
  'server-decisions': serverDecisionsView,
  'server-history': serverHistoryView,
  'server-inventory': serverInventoryView,
  'server-packages': serverPackagesView,
  'server-security': serverSecurityView,
  'host-map': hostMapView,
  'host-map-cells': mapCellsView,
  'server-series': serverSeriesView,
  resource: resourceView,
  'resource-choices': resourceChoicesView,
  resources: resourcesView,
  roles: rolesView,
  rule: ruleView,
  'rule-editor': ruleEditorView,
  'rule-history': ruleHistoryView,
  'rule-preview': rulePreviewView,
  rules: rulesView,
  server: serverView,
  servers: serversView,
  settings: settingsView,
  silences: silencesView,
  vulnerability: vulnerabilityView,
  webhook: webhookView,
  webhooks: webhooksView,
}
