// Every route of the REST API, group by group.
import { accountRoutes } from './account/routes.ts'
import { agentRoutes } from './agents/routes.ts'
import { alertRoutes } from './alerts/routes.ts'
import { leaveSteps } from './approvals/leave-steps.ts'
import { approvalRoutes } from './approvals/routes.ts'
import { auditRoutes } from './audit/routes.ts'
import { certificateRoutes } from './certificates/routes.ts'
import { checkRoutes } from './checks/routes.ts'
import { collectorRoutes } from './collector-api/routes.ts'
import { collectorAdminRoutes } from './collectors/routes.ts'
import { companyRoutes } from './companies/routes.ts'
import { connectionRoutes } from './connections/routes.ts'
import { dnsRoutes } from './dns/routes.ts'
import { exportRoutes } from './exports/routes.ts'
import { fileRoutes } from './files/routes.ts'
import { iacRoutes } from './iac/routes.ts'
import { identityRoutes } from './identity/routes.ts'
import { inventoryRoutes } from './inventory/routes.ts'
import { invitationRoutes } from './invitations/routes.ts'
import { kinds } from './kinds.ts'
import { licenseRoutes } from './licenses/routes.ts'
import { loadBalancerRoutes } from './load-balancers/routes.ts'
import { mobileRoutes } from './mobile/routes.ts'
import { networkRoutes } from './network/routes.ts'
import { notificationAdminRoutes } from './notifications/admin-routes.ts'
import { notificationRoutes } from './notifications/routes.ts'
import { optionRoutes } from './options/routes.ts'
import { overviewRoutes } from './overview/routes.ts'
import type { Route } from './platform/http/route.ts'
import { proxyRoutes } from './proxies/routes.ts'
import { queueRoutes } from './queues/routes.ts'
import { usualRoutes } from './resources/kind-routes.ts'
import { ruleRoutes } from './rules/routes.ts'
import { searchRoutes } from './search/routes.ts'
import { securityManageRoutes } from './security/manage-routes.ts'
import { matcherRoutes } from './security/matcher/routes.ts'
import { securityRoutes } from './security/routes.ts'
import { scanHostRoutes } from './security/scan-hosts/routes.ts'
import { serverRoutes } from './servers/routes.ts'
import { settingsRoutes } from './settings/routes.ts'
import { silenceRoutes } from './silences/routes.ts'
import { commandRoutes } from './system/commands/routes.ts'
import { systemRoutes } from './system/routes.ts'
import { teamRoutes } from './teams/routes.ts'
import { webhookRoutes } from './webhooks/routes.ts'

const groupRoutes: readonly Route[] = [
  ...licenseRoutes,
  ...serverRoutes,
  ...inventoryRoutes,
  ...agentRoutes,
  ...alertRoutes,
  ...checkRoutes,
  ...ruleRoutes,
  ...silenceRoutes,
  ...overviewRoutes,
  ...settingsRoutes,
  ...collectorAdminRoutes,
  ...collectorRoutes,
  ...notificationRoutes,
  ...notificationAdminRoutes,
  ...webhookRoutes,
  ...networkRoutes,
  ...connectionRoutes,
  ...optionRoutes,
  ...searchRoutes,
  ...certificateRoutes,
  ...dnsRoutes,
  ...loadBalancerRoutes,
  ...proxyRoutes,
  ...identityRoutes(leaveSteps),
  ...invitationRoutes,
  ...companyRoutes,
  ...teamRoutes,
  ...securityRoutes,
  ...securityManageRoutes,
  ...iacRoutes,
  ...approvalRoutes,
  ...auditRoutes,
  ...queueRoutes,
  ...systemRoutes,
  ...commandRoutes,
  ...fileRoutes,
  ...exportRoutes,
  ...mobileRoutes,
  ...accountRoutes,
  ...matcherRoutes,
  ...scanHostRoutes,
]

const nameOf = ({ method, path }: Route): string => `${method} ${path}`
const ofGroups = new Set(groupRoutes.map(nameOf))

/** The usual routes of every kind, but those that its group has made its own. */
const kindRoutes = kinds.flatMap(kind => usualRoutes(kind)).filter(each => !ofGroups.has(nameOf(each)))

export const apiRoutes: readonly Route[] = [...groupRoutes, ...kindRoutes]
