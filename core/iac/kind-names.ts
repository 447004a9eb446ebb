// The kinds of manifests by name, in the order of applying (resources.md §6): what a workflow can be for,
// and what tickets and runs are filtered by. test/api/kinds.test.ts holds the list to the kinds that there are.
export const manifestKindNames = [
  'option-list',
  'subnet',
  'dns-server',
  'server',
  'certificate',
  'ip-address',
  'check',
  'alert-rule',
  'silence',
  'webhook',
  'load-balancer',
  'proxy',
  'dns-zone',
  'connection',
  'export-schedule',
] as const
