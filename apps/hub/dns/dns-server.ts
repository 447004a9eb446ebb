// A name server of a company (group 20 of the catalogue): what answers for its zones, or resolves for its servers.

import { parseHostName } from '../../../core/dns/domain-name.ts'
import { parseAddress } from '../../../core/network/ip-address.ts'
import { invalidField } from '../platform/http/api-error.ts'
import { type Words, words } from '../platform/http/api-texts.ts'
import { refuseTarget } from '../platform/outbound-guard.ts'
import { apiUrlFault } from '../resources/api-url.ts'
import { choiceField, integerField, referenceField, secretField, textField } from '../resources/field.ts'
import { defineKind, type RowOf, type Write } from '../resources/kind.ts'

const hostFault = (given: string): Words | null =>
  parseAddress(given) || parseHostName(given) ? null : words('host_or_address')
const normalHost = (given: string): string => parseAddress(given)?.toString() ?? parseHostName(given) ?? given

const fields = {
  host: textField(253, { required: true, search: 'exact', check: hostFault, normal: normalHost }),
  port: integerField(1, 65_535, { fallback: 53 }),
  role: choiceField(['authoritative', 'resolver'], { fallback: 'authoritative', filter: true }),
  integration: choiceField(['none', 'powerdns'], { fallback: 'none', filter: true }),
  api_url: textField(2048, { check: apiUrlFault }),
  api_key: secretField(1024, { address: 'api_url' }),
  /** The name of the server in its own API. */
  server_id: textField(255, { fallback: 'localhost' }),
  server_ref_id: referenceField('server', {}),
} as const

type DnsServer = RowOf<typeof fields>

async function beforeWrite({ editor, before, next }: Write<DnsServer>): Promise<void> {
  if (next.integration === 'powerdns' && next.api_url === null) throw invalidField('api_url', 'required')
  if (before?.host !== next.host) await refuseTarget(editor.hub.config, 'host', next.host)
  if (next.api_url !== null && before?.api_url !== next.api_url)
    await refuseTarget(editor.hub.config, 'api_url', next.api_url)
}

export const dnsServerKind = defineKind({
  kind: 'dns_server',
  title: {
    one: { en: 'name server', vi: 'máy chủ tên miền' },
    many: { en: 'name servers', vi: 'máy chủ tên miền' },
  },
  group: 'DNS',
  path: '/dns/servers',
  parameter: 'nameserver',
  table: 'dns_servers',
  schemaName: 'DnsServer',
  fields,
  limit: 50,
  permissions: { view: 'dns.view', manage: 'dns.manage' },
  conditions: {
    nameserver_unreachable: {
      severity: 'critical',
      text: {
        en: 'the name server {name} does not answer: {error}',
        vi: 'máy chủ tên miền {name} không trả lời: {error}',
      },
    },
  },
  iac: { kind: 'dns-server', order: 3, key: ['host', 'port'] },
  csv: null,
  hooks: { beforeWrite },
  without: ['show'],
})
