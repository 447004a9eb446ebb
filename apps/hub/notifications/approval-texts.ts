// The texts of approvals, in both languages (resources.md R-050); a company can replace each. Tickets are listed by
// name,
// cut after a few.

export const approvalTypes = [
  'approval.requested',
  'approval.decided',
  'approval.expired',
  'approval.due_soon',
  'approval.overdue',
  'approval.blocked',
] as const
export type ApprovalType = (typeof approvalTypes)[number]

type Template = { readonly title: string; readonly body: string }

export const approvalTexts: Readonly<Record<ApprovalType, Readonly<Record<'en' | 'vi', Template>>>> = {
  'approval.requested': {
    en: {
      title: '{requester} asks for your approval: {run}',
      body: '{count} {count|change waits|changes wait} for you until {due_at}: {names}. {link}',
    },
    vi: {
      title: '{requester} xin bạn phê duyệt: {run}',
      body: '{count} thay đổi chờ bạn đến {due_at}: {names}. {link}',
    },
  },
  'approval.decided': {
    en: {
      title: '{decision}: {run}',
      body: '{decider} has decided on {count} {count|change|changes}: {names}. {comment} {link}',
    },
    vi: { title: '{decision}: {run}', body: '{decider} đã quyết định {count} thay đổi: {names}. {comment} {link}' },
  },
  'approval.expired': {
    en: {
      title: 'Nobody decided in time: {run}',
      body: '{count} {count|change is|changes are} not applied: {names}. Plan the run again to ask once more. {link}',
    },
    vi: {
      title: 'Không ai quyết định kịp: {run}',
      body: '{count} thay đổi không được áp dụng: {names}. Hãy lập lại kế hoạch để xin duyệt lại. {link}',
    },
  },
  'approval.due_soon': {
    en: {
      title: 'Your approval is due soon: {run}',
      body: '{count} {count|change|changes} of {requester} {count|waits|wait} for you until {due_at}: {names}. {link}',
    },
    vi: {
      title: 'Sắp đến hạn phê duyệt: {run}',
      body: '{count} thay đổi của {requester} chờ bạn đến {due_at}: {names}. {link}',
    },
  },
  'approval.overdue': {
    en: {
      title: 'An approval is overdue: {run}',
      body: '{count} {count|change|changes} of {requester} {count|waits|wait} since {due_at}: {names}. {link}',
    },
    vi: {
      title: 'Phê duyệt đã quá hạn: {run}',
      body: '{count} thay đổi của {requester} đã quá hạn từ {due_at}: {names}. {link}',
    },
  },
  'approval.blocked': {
    en: {
      title: 'Too few people can approve: {run}',
      body: '{count} {count|change|changes} of {requester} {count|waits|wait} for people who are gone: {names}. Delegate for one of them. {link}',
    },
    vi: {
      title: 'Không đủ người phê duyệt: {run}',
      body: '{count} thay đổi của {requester} chờ người không còn nữa: {names}. Hãy ủy quyền thay họ. {link}',
    },
  },
}

/** What a preview of such a text is filled with. */
export const approvalSample: Readonly<Record<string, string>> = {
  run: 'Update 2',
  requester: 'Lan',
  decider: 'Minh',
  decision: 'approved',
  comment: 'fine',
  count: '2',
  names: 'server web-1, check web',
  due_at: '2026-01-31T12:00:00.000Z',
  link: '',
}

/** The words for what was decided. */
export const decisionWords: Readonly<Record<'approved' | 'rejected', Readonly<Record<'en' | 'vi', string>>>> = {
  approved: { en: 'Approved', vi: 'Đã phê duyệt' },
  rejected: { en: 'Rejected', vi: 'Đã từ chối' },
}
