// The texts of what the hub finds wrong with resources, and of its end (resources.md R-010), and of what is asked of
// their owners, in both languages; a company can replace each.

export const resourceTypes = ['resource.problem', 'resource.recovered', 'certificate.renewal_requested'] as const

type Template = { readonly title: string; readonly body: string }

export const resourceTexts: Readonly<Record<(typeof resourceTypes)[number], Readonly<Record<'en' | 'vi', Template>>>> =
  {
    'resource.problem': {
      en: { title: '[{severity}] {kind} {name}: {code}', body: '{message}. {link}' },
      vi: { title: '[{severity}] {kind} {name}: {code}', body: '{message}. {link}' },
    },
    'resource.recovered': {
      en: { title: 'Resolved: {kind} {name}: {code}', body: 'It was: {message}. {link}' },
      vi: { title: 'Đã hết: {kind} {name}: {code}', body: 'Trước đó: {message}. {link}' },
    },
    'certificate.renewal_requested': {
      en: { title: 'Renew the certificate {name}', body: 'Due on {due_on}. {note} {link}' },
      vi: { title: 'Cần gia hạn chứng chỉ {name}', body: 'Hạn chót {due_on}. {note} {link}' },
    },
  }

/** What a preview of such a text is filled with. */
export const resourceSample: Readonly<Record<string, string>> = {
  kind: 'subnet',
  name: '10.0.0.0/24',
  code: 'subnet_filling',
  message: '10.0.0.0/24 is 85 percent used',
  severity: 'warning',
  owner: 'Network',
  due_on: '2026-02-28',
  note: 'Before the holidays.',
  link: '',
}
