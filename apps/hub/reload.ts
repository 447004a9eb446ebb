// SIGHUP: certificate and settings are read again. What a running hub can take over it takes; of the rest the log says
// that it needs a restart.
import type { Logger } from 'pino'
import type { HubConfig } from './config.ts'

/** Looked at whenever they are needed, so that a new value holds from the next request on. */
const RELOADED = [
  'agents.online_threshold',
  'agents.token_rotation',
  'allowed_hosts',
  'collector.admin_token',
  'collector.admin_url',
  'collector.timeout',
  'events.retention_days',
  'iac.yaml_upload_enabled',
  'log.level',
  'matcher.token',
  'matcher.scan_url',
  'matcher.url',
  'mail.from',
  'mail.unconfirmed_max',
  'notifications.group_wait',
  'ops.allowed_hosts',
  'public_url',
  'rate.collector_per_minute',
  'rate.default_per_minute',
  'rate.enroll_failures',
  'rate.enroll_per_minute',
  'rate.mail_per_minute',
  'rate.matcher_per_minute',
  'rate.rotations_per_hour',
  'rate.session_per_minute',
  'rate.token_max_per_minute',
  'smtp.url',
  'tls.cert_file',
  'tls.hsts_max_age',
  'tls.key_file',
  'streams.heartbeat',
  'streams.per_company',
  'streams.per_token',
  'trusted_proxies',
  'outbound.allowed_ranges',
  'webhooks.allow_private',
  'webhooks.timeout',
] as const satisfies readonly (keyof HubConfig)[]

const reloaded = new Set<string>(RELOADED)

/** Takes over what can be taken over. Returns the keys that changed. */
export function applyReload(config: HubConfig, fresh: HubConfig, log: Logger): (keyof HubConfig)[] {
  const keys = Object.keys(fresh) as (keyof HubConfig)[]
  const changed = keys.filter(key => JSON.stringify(config[key]) !== JSON.stringify(fresh[key]))
  const taken = changed.filter(key => reloaded.has(key))
  const left = changed.filter(key => !reloaded.has(key))
  Object.assign(config, Object.fromEntries(taken.map(key => [key, fresh[key]])))
  log.level = config['log.level']
  if (left.length > 0) log.warn({ keys: left }, 'these settings changed and need a restart')
  return taken
}
