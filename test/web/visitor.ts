// A person at the web interface without a browser: forms, cookies and the live stream over HTTP, against a hub of the
// API's harness.
import { randomUUID } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { createUser } from '../../apps/hub/identity/accounts.ts'
import { users } from '../../apps/hub/platform/db/schema-identity.ts'
import { inTransaction } from '../../apps/hub/platform/db/transaction.ts'
import { type Patch, patched } from '../../apps/hub/web/live/patch.ts'
import type { ServersView } from '../../apps/hub/web/views/servers.ts'
import type { TestHub } from '../api/hub-harness.ts'

export const PASSWORD = 'correct horse battery staple'

export type Person = { readonly userId: string; readonly email: string; readonly companyId: string }

/** With the least work that the format bears: hardly any test asks how long a login takes, and all wait for it. */
let hashed: Promise<string> | null = null
const passwordHash = (): Promise<string> => {
  hashed ??= Bun.password.hash(PASSWORD, { algorithm: 'argon2id', memoryCost: 8, timeCost: 1 })
  return hashed
}

/** A user that can log in with PASSWORD. */
export async function newPerson(
  { hub }: TestHub,
  companyId: string,
  permissions: readonly string[] = ['*'],
  name = 'Test person',
): Promise<Person> {
  const email = `${randomUUID()}@example.test`
  const user = await inTransaction(hub.database.db, async tx => {
    const made = await createUser(tx, { companyId, email, name, permissions })
    await tx.db
      .update(users)
      .set({ passwordHash: await passwordHash() })
      .where(eq(users.id, made.id))
    return made
  })
  return { userId: user.id, email, companyId }
}

/** Sends the login form. */
export const sendLogin = (
  url: string,
  email: string,
  password = PASSWORD,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> =>
  fetch(`${url}/login`, {
    method: 'POST',
    body: new URLSearchParams({ email, password }),
    redirect: 'manual',
    headers: { ...headers },
  })

export type Session = {
  readonly cookie: string
  readonly csrfToken: string
  /** The page after the login as it was served. */
  readonly page: string
  /** Its address: `/c/{company}`. */
  readonly base: string
}

const cookieOf = (response: Response): string => (response.headers.get('set-cookie') ?? '').split(';')[0] ?? ''

/** What a page unmasks its token with: the first half of the bytes combined with the second. */
function unmasked(text: string): string {
  const bytes = Buffer.from(text, 'hex')
  const half = bytes.length / 2
  return Buffer.from(bytes.subarray(half).map((byte, index) => byte ^ (bytes[index] ?? 0))).toString()
}

/** Logs in and reads the first page. */
export async function logIn(url: string, email: string): Promise<Session> {
  const response = await sendLogin(url, email)
  if (response.status !== 303) throw new Error(`the login answered ${response.status}`)
  const cookie = cookieOf(response)
  const headers = { cookie }
  const first = await fetch(`${url}/`, { headers, redirect: 'manual' })
  const at = first.headers.get('location') ?? '/'
  const page = await (await fetch(`${url}${at}`, { headers })).text()
  const session = (await (await fetch(`${url}/web/session`, { headers })).json()) as { csrf: string }
  return { cookie, csrfToken: unmasked(session.csrf), page, base: /^\/c\/[^/]+/.exec(at)?.[0] ?? '' }
}

export const slugOf = ({ base }: Session): string => base.slice(3)

/** A view over HTTP, as a page asks for it. */
export const askView = (url: string, session: Session, name: string, search = ''): Promise<Response> =>
  fetch(`${url}/web/view/${name}?company=${slugOf(session)}${search}`, { headers: { cookie: session.cookie } })

/** The servers of the session's company as their page is sent them. */
export async function serversOf(url: string, session: Session, search = ''): Promise<ServersView> {
  const answer = await askView(url, session, 'servers', search)
  if (answer.status !== 200) throw new Error(`the view answered ${answer.status}`)
  return (await answer.json()) as ServersView
}

type LiveEvent = { readonly name: string; readonly data: unknown }

/** The live stream of a session; `next` waits for the next event of a name. */
export class Live {
  private readonly seen: LiveEvent[] = []
  private wake: () => void = () => {}
  private isOver = false

  private constructor(
    readonly response: Response,
    private readonly control: AbortController,
  ) {
    void this.read().catch(() => {})
  }

  /** `views`: what is followed, as `servers?company=acme`, from no version. */
  static async open(url: string, cookie: string, ...views: readonly string[]): Promise<Live> {
    const control = new AbortController()
    const headers = { cookie, accept: 'text/event-stream' }
    const search = new URLSearchParams(views.map((view): [string, string] => ['v', ` ${view}`]))
    return new Live(await fetch(`${url}/web/live?${search}`, { headers, signal: control.signal }), control)
  }

  private async read(): Promise<void> {
    const decoder = new TextDecoder()
    let text = ''
    try {
      for await (const chunk of this.response.body ?? []) {
        text += decoder.decode(chunk, { stream: true })
        const blocks = text.split('\n\n')
        text = blocks.pop() ?? ''
        for (const block of blocks) this.take(block)
      }
    } finally {
      this.isOver = true
      this.wake()
    }
  }

  private take(block: string): void {
    const name = /^event: (.*)$/m.exec(block)?.[1]
    if (!name) return
    this.seen.push({ name, data: JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? 'null') })
    this.wake()
  }

  /** The next event of this name. Rejects when the stream ends before it, or after fifteen seconds. */
  async next(name: string): Promise<unknown> {
    const deadline = AbortSignal.any([AbortSignal.timeout(15_000), this.control.signal])
    for (;;) {
      const at = this.seen.findIndex(event => event.name === name)
      if (at >= 0) return this.seen.splice(0, at + 1).at(-1)?.data
      if (this.isOver) throw new Error(`the stream ended before an event ${name}`)
      if (deadline.aborted) throw new Error(`no event ${name} came`)
      await new Promise<void>(resolve => {
        this.wake = resolve
        deadline.addEventListener('abort', () => resolve(), { once: true })
      })
    }
  }

  /** The next whole answer of a view. */
  async view<T>(): Promise<T> {
    const { value } = (await this.next('view')) as { value: T }
    return value
  }

  /** The value that a page has once the next change has come. */
  async changed<T>(before: T): Promise<T> {
    const { patch } = (await this.next('patch')) as { patch: Patch }
    return patched(before, patch) as T
  }

  /** Resolves once the hub has ended the stream. */
  async ended(): Promise<void> {
    while (!this.isOver)
      await new Promise<void>(resolve => {
        this.wake = resolve
      })
  }

  /** Breaks the connection, as a browser that is closed. */
  close(): void {
    this.control.abort()
  }
}
