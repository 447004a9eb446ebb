// The registry of settings (decision R-066): what may be set over the API, at which level, within which domain, and
// what holds where nothing is set. A setting that is a key of the configuration too replaces what stands there.
import { createPrivateKey } from 'node:crypto'
import { isIP } from 'node:net'
import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { assert } from '../../../core/assert.ts'
import { isObject } from '../../../core/json-object.ts'
import { type HubConfig, isSmtpUrl, isWebUrl } from '../config.ts'
import type { Language } from '../platform/http/api-texts.ts'
import { boolean, integer, listOf, text } from '../platform/http/request-schema.ts'

/** `both`: a company may have a value of its own. `none`: shown, and set by the configuration only. */
type SettingLevels = 'both' | 'system' | 'none'

export type SettingDefinition<S extends TSchema = TSchema> = {
  readonly levels: SettingLevels
  readonly schema: S
  readonly default: Static<S> | null
  readonly says: Readonly<Record<Language, string>>
  readonly isSecret: boolean
  /** The key of the configuration that it replaces. */
  readonly configKey: keyof HubConfig | null
  /** What the schema cannot say of a value. */
  readonly accepts: (value: Static<S>) => boolean
}

type More<S extends TSchema> = Partial<Pick<SettingDefinition<S>, 'isSecret' | 'configKey' | 'accepts'>>

const setting = <S extends TSchema>(
  levels: SettingLevels,
  schema: S,
  value: Static<S> | null,
  en: string,
  vi: string,
  more: More<S> = {},
): SettingDefinition<S> => ({
  levels,
  schema,
  default: value,
  says: { en, vi },
  isSecret: false,
  configKey: null,
  accepts: () => true,
  ...more,
})

const KIB = 1024
const MIB = KIB * KIB
const PEM_CHARS_MAX = 64 * KIB

function isEcKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyDetails?.namedCurve === 'prime256v1'
  } catch {
    return false
  }
}

/** The JSON of a service account of Google, as its console hands it out. */
function isServiceAccount(json: string): boolean {
  try {
    const given: unknown = JSON.parse(json)
    return (
      isObject(given) &&
      [given.project_id, given.client_email, given.private_key].every(part => typeof part === 'string' && part !== '')
    )
  } catch {
    return false
  }
}

const isCertificates = (pem: string): boolean =>
  /^(\s*-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----)+\s*$/.test(pem)

const days = (max: number, min = 1) => integer(min, max)
const shownOnly = (key: keyof HubConfig, en: string, vi: string) =>
  setting('none', Type.Unknown(), null, en, vi, { configKey: key })

const settingDefinitions = {
  'iac.yaml_upload_enabled': setting(
    'both',
    boolean(),
    true,
    'Whether manifests may be sent as YAML.',
    'Có cho phép gửi manifest dạng YAML hay không.',
    { configKey: 'iac.yaml_upload_enabled' },
  ),
  'iac.lock_managed': setting(
    'both',
    boolean(),
    false,
    'Whether resources that come from manifests are closed to changes by hand.',
    'Có khóa việc sửa tay các tài nguyên do manifest quản lý hay không.',
  ),
  'iac.require_kind_permissions': setting(
    'both',
    boolean(),
    false,
    'Whether applying a manifest also needs the permissions of the kinds in it.',
    'Áp dụng manifest có cần thêm quyền của từng loại tài nguyên hay không.',
  ),
  'iac.submissions_per_minute': setting(
    'system',
    integer(1, 600),
    10,
    'Manifests that a caller may send a minute.',
    'Số manifest một người gọi được gửi mỗi phút.',
  ),
  'rate.default_per_minute': setting(
    'system',
    integer(1, 100_000),
    60,
    'Requests a minute of an API token, unless the token says otherwise.',
    'Số yêu cầu mỗi phút của một API token, trừ khi token quy định khác.',
    { configKey: 'rate.default_per_minute' },
  ),
  'events.retention_days': setting(
    'system',
    days(3650),
    90,
    'Days for which alert events are kept, unless a company says otherwise.',
    'Số ngày lưu sự kiện cảnh báo, trừ khi công ty quy định khác.',
    { configKey: 'events.retention_days' },
  ),
  'audit.retention_days': setting(
    'system',
    days(3650, 30),
    400,
    'Days for which the audit log is kept.',
    'Số ngày lưu nhật ký kiểm toán.',
  ),
  'trash.days': setting(
    'system',
    days(365),
    30,
    'Days in which what was deleted can be restored.',
    'Số ngày có thể khôi phục thứ đã xóa.',
  ),
  'certificates.warn_days': setting(
    'both',
    listOf(integer(1, 365), 10, 1),
    [30, 14, 7, 3, 1],
    'How many days before its end a certificate is warned of.',
    'Cảnh báo trước khi chứng chỉ hết hạn bao nhiêu ngày.',
  ),
  'certificates.extra_roots': setting(
    'both',
    text(PEM_CHARS_MAX),
    null,
    'Further root certificates to trust, PEM.',
    'Các chứng chỉ gốc được tin cậy thêm, dạng PEM.',
    { accepts: isCertificates },
  ),
  'dns.resolvers': setting(
    'system',
    listOf(text(45), 5),
    [],
    'Addresses of the resolvers to ask; none: those of the system.',
    'Địa chỉ các máy phân giải tên miền; để trống: dùng của hệ thống.',
    { accepts: list => list.every(address => isIP(address) !== 0) },
  ),
  'ips.stale_days': setting(
    'both',
    days(365),
    30,
    'Days without being seen after which an address counts as stale.',
    'Số ngày không thấy thì một địa chỉ IP bị coi là cũ.',
  ),
  'approvals.expire_hours': setting(
    'both',
    integer(1, 8760),
    168,
    'Hours after which an approval that nobody decided expires.',
    'Số giờ sau đó một yêu cầu phê duyệt chưa ai quyết định sẽ hết hạn.',
  ),
  'exports.max_rows': setting(
    'system',
    integer(1, 10_000_000),
    1_000_000,
    'The most rows of an export.',
    'Số dòng tối đa của một bản xuất.',
  ),
  'exports.kept_days': setting(
    'both',
    days(30),
    7,
    'Days for which an export can be downloaded.',
    'Số ngày có thể tải một bản xuất.',
  ),
  'files.company_bytes': setting(
    'system',
    integer(MIB, MIB ** 2),
    KIB * MIB,
    'The most bytes of all files of a company.',
    'Tổng dung lượng tối đa của các tệp trong một công ty, tính bằng byte.',
  ),
  'smtp.url': setting(
    'system',
    text(1024),
    null,
    'The mail server, smtp://user:password@host:port; none: no e-mail is sent.',
    'Máy chủ thư, smtp://user:password@host:port; để trống: không gửi e-mail.',
    { configKey: 'smtp.url', isSecret: true, accepts: isSmtpUrl },
  ),
  'mail.from': setting('system', text(254), null, 'The sender of e-mail.', 'Người gửi của e-mail.', {
    configKey: 'mail.from',
    accepts: sender => /^[^\r\n]*[^\s@<]@[^\s@>]+>?$/.test(sender),
  }),
  public_url: setting(
    'system',
    text(1024),
    null,
    'The address of the hub in links.',
    'Địa chỉ của hub trong các liên kết.',
    { configKey: 'public_url', accepts: isWebUrl },
  ),
  'push.subject': setting(
    'system',
    text(254),
    null,
    'Whom push services may write to: mailto:… or https://…',
    'Địa chỉ để dịch vụ đẩy liên hệ: mailto:… hoặc https://…',
    { accepts: value => /^(mailto:[^\s@]+@[^\s@]+|https:\/\/\S+)$/.test(value) },
  ),
  'push.fcm_credentials': setting(
    'system',
    text(16 * KIB),
    null,
    'The service account for Firebase Cloud Messaging, as JSON.',
    'Tài khoản dịch vụ cho Firebase Cloud Messaging, dạng JSON.',
    { isSecret: true, accepts: isServiceAccount },
  ),
  'push.apns_key': setting(
    'system',
    text(8 * KIB),
    null,
    'The signing key for Apple Push Notification service, PEM (p8).',
    'Khóa ký cho Apple Push Notification service, dạng PEM (p8).',
    { isSecret: true, accepts: isEcKey },
  ),
  'push.apns_key_id': setting('system', text(32), null, 'The id of that key.', 'Mã của khóa đó.'),
  'push.apns_team_id': setting('system', text(32), null, 'The team that the key is of.', 'Nhóm sở hữu khóa đó.'),
  'push.apns_topic': setting('system', text(128), null, 'The bundle id of the app.', 'Bundle id của ứng dụng.'),
  listen: shownOnly('listen', 'Where the API and the web interface are served.', 'Nơi phục vụ API và giao diện web.'),
  'ops.listen': shownOnly(
    'ops.listen',
    'Where health and metrics are served.',
    'Nơi phục vụ trạng thái và số đo của hub.',
  ),
  'outbound.allowed_ranges': shownOnly(
    'outbound.allowed_ranges',
    'Private addresses that the hub may connect to for a company.',
    'Các địa chỉ nội bộ mà hub được kết nối tới thay cho công ty.',
  ),
  trusted_proxies: shownOnly(
    'trusted_proxies',
    'Addresses whose X-Forwarded-For is believed.',
    'Các địa chỉ được tin X-Forwarded-For.',
  ),
} as const

export type SettingKey = keyof typeof settingDefinitions
export type SettingValue<K extends SettingKey> = Static<(typeof settingDefinitions)[K]['schema']>

export const settingKeys: readonly SettingKey[] = Object.keys(settingDefinitions).filter(isSettingKey)

export function isSettingKey(key: string): key is SettingKey {
  return Object.hasOwn(settingDefinitions, key)
}

/** The definition without the type of its values, for those who treat all settings alike. */
export const definitionOf = (key: SettingKey): SettingDefinition => settingDefinitions[key] as SettingDefinition

/** The default of a setting that has one. */
export function defaultOf<K extends SettingKey>(key: K): SettingValue<K> {
  const { default: value } = definitionOf(key)
  assert(value !== null, `the setting ${key} has a default`)
  // Each definition holds its default to its schema.
  return value as SettingValue<K>
}
