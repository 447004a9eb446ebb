// The commands that the hub can be told to run (decision R-065): functions with typed parameters, never a shell.
import { type TObject, Type } from '@sinclair/typebox'
import { cleanUp } from '../../clean-up.ts'
import { type ReloadKind, requestReload } from '../../collectors/collector-jobs.ts'
import type { Language } from '../../platform/http/api-texts.ts'
import { integer, oneOf } from '../../platform/http/request-schema.ts'
import { queueNames } from '../../platform/jobs/retries-and-concurrency.ts'
import { verifyCertificates } from './certificate-commands.ts'
import type { CommandTask } from './command-task.ts'
import { analyzeDatabase, resealSecrets, resolveScopes, retryFailedJobs } from './database-commands.ts'
import { emptyTrash, rebuildSearch, rebuildSearchOfAll, recountSubnets, verifyZones } from './resource-commands.ts'
import { supportReport } from './support-report.ts'

export type CommandDefinition = {
  readonly name: string
  readonly title: Readonly<Record<Language, string>>
  /** `system`: for all companies, and for super administrators only. */
  readonly level: 'company' | 'system'
  readonly isDangerous: boolean
  readonly timeoutSeconds: number
  readonly parameters: TObject
  readonly run: (task: CommandTask) => Promise<void>
}

const reloadKinds = ['rules', 'silences', 'checks', 'settings'] as const satisfies readonly ReloadKind[]
const NO_PARAMETERS = Type.Object({}, { additionalProperties: false })
const MINUTE = 60

async function reloadCollectors({ hub, parameters }: CommandTask): Promise<void> {
  for (const kind of reloadKinds)
    if (parameters.kind === undefined || parameters.kind === kind) await requestReload(hub, kind)
}

export const commandDefinitions: readonly CommandDefinition[] = [
  {
    name: 'resolve-scopes',
    title: {
      en: 'Work out again which servers rules, silences and checks cover',
      vi: 'Tính lại các máy chủ mà quy tắc, khoảng im lặng và kiểm tra áp dụng',
    },
    level: 'company',
    isDangerous: false,
    timeoutSeconds: 30 * MINUTE,
    parameters: NO_PARAMETERS,
    run: resolveScopes,
  },
  {
    name: 'reload-collectors',
    title: { en: 'Let the collectors pull what changed', vi: 'Yêu cầu các collector lấy thay đổi mới' },
    level: 'company',
    isDangerous: false,
    timeoutSeconds: MINUTE,
    parameters: Type.Object({ kind: Type.Optional(oneOf(reloadKinds)) }, { additionalProperties: false }),
    run: reloadCollectors,
  },
  {
    name: 'verify-certificates',
    title: {
      en: 'Look now at every place where certificates are served',
      vi: 'Kiểm tra ngay mọi nơi đang dùng chứng chỉ',
    },
    level: 'company',
    isDangerous: false,
    timeoutSeconds: 60 * MINUTE,
    parameters: NO_PARAMETERS,
    run: verifyCertificates,
  },
  {
    name: 'rebuild-search',
    title: { en: 'Write anew what search looks in', vi: 'Xây dựng lại chỉ mục tìm kiếm' },
    level: 'company',
    isDangerous: false,
    timeoutSeconds: 60 * MINUTE,
    parameters: NO_PARAMETERS,
    run: rebuildSearch,
  },
  {
    name: 'verify-dns',
    title: { en: 'Verify every zone at its name servers', vi: 'Kiểm tra mọi vùng tại máy chủ tên miền' },
    level: 'company',
    isDangerous: false,
    timeoutSeconds: 10 * MINUTE,
    parameters: NO_PARAMETERS,
    run: verifyZones,
  },
  {
    name: 'recount-subnets',
    title: { en: 'Count the addresses of all subnets anew', vi: 'Đếm lại địa chỉ của mọi mạng con' },
    level: 'company',
    isDangerous: false,
    timeoutSeconds: 30 * MINUTE,
    parameters: NO_PARAMETERS,
    run: recountSubnets,
  },
  {
    name: 'purge-trash',
    title: { en: 'Delete for good what lies in the trash', vi: 'Xóa vĩnh viễn những gì trong thùng rác' },
    level: 'company',
    isDangerous: true,
    timeoutSeconds: 60 * MINUTE,
    parameters: Type.Object({ older_than_days: Type.Optional(integer(0, 365)) }, { additionalProperties: false }),
    run: emptyTrash,
  },
  {
    name: 'rebuild-search-all',
    title: {
      en: 'Write anew what search looks in, for all companies',
      vi: 'Xây dựng lại chỉ mục tìm kiếm của mọi công ty',
    },
    level: 'system',
    isDangerous: false,
    timeoutSeconds: 60 * MINUTE,
    parameters: NO_PARAMETERS,
    run: rebuildSearchOfAll,
  },
  {
    name: 'clean-up',
    title: { en: 'Delete what is past its time, now', vi: 'Xóa ngay những gì đã quá hạn lưu' },
    level: 'system',
    isDangerous: true,
    timeoutSeconds: 60 * MINUTE,
    parameters: NO_PARAMETERS,
    run: ({ hub }) => cleanUp(hub),
  },
  {
    name: 'reseal-secrets',
    title: {
      en: 'Seal stored secrets with the key of today',
      vi: 'Niêm phong lại các bí mật đã lưu bằng khóa hiện tại',
    },
    level: 'system',
    isDangerous: true,
    timeoutSeconds: 60 * MINUTE,
    parameters: NO_PARAMETERS,
    run: resealSecrets,
  },
  {
    name: 'retry-failed-jobs',
    title: { en: 'Try failed jobs once more', vi: 'Thử lại các công việc đã thất bại' },
    level: 'system',
    isDangerous: false,
    timeoutSeconds: 10 * MINUTE,
    parameters: Type.Object({ queue: Type.Optional(oneOf(queueNames)) }, { additionalProperties: false }),
    run: retryFailedJobs,
  },
  {
    name: 'analyze-database',
    title: { en: 'Let the database count anew for its plans', vi: 'Cập nhật thống kê của cơ sở dữ liệu' },
    level: 'system',
    isDangerous: false,
    timeoutSeconds: 60 * MINUTE,
    parameters: NO_PARAMETERS,
    run: analyzeDatabase,
  },
  {
    name: 'support-report',
    title: { en: 'Write a report for support, as a file', vi: 'Tạo báo cáo hỗ trợ dưới dạng tệp' },
    level: 'system',
    isDangerous: false,
    timeoutSeconds: 5 * MINUTE,
    parameters: NO_PARAMETERS,
    run: supportReport,
  },
]
