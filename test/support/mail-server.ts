// A mail server that keeps what it takes.
import { SMTPServer } from 'smtp-server'

export type Mail = { readonly from: string; readonly to: readonly string[]; readonly text: string }
export type MailServer = {
  /** With the login that it wants. */
  readonly url: string
  readonly mails: Mail[]
  /** Recipients are refused with this code from now on; 0: no more. */
  refuse(code: number): void
  stop(): Promise<void>
}

export async function startMailServer(): Promise<MailServer> {
  const mails: Mail[] = []
  let refusal = 0
  const listener = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    onAuth: ({ username, password }, _session, done) =>
      username === 'hub' && password === 'secret' ? done(null, { user: 'hub' }) : done(new Error('wrong login')),
    onRcptTo: (_address, _session, done) =>
      done(refusal === 0 ? null : Object.assign(new Error('refused'), { responseCode: refusal })),
    onData(stream, { envelope }, done) {
      const chunks: Buffer[] = []
      stream.on('data', chunk => chunks.push(chunk))
      stream.on('end', () => {
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address
        const to = envelope.rcptTo.map(item => item.address)
        mails.push({ from, to, text: Buffer.concat(chunks).toString().replaceAll('=\r\n', '') })
        done()
      })
    },
  })
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  const address = listener.server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    url: `smtp://hub:secret@127.0.0.1:${port}`,
    mails,
    refuse(code) {
      refusal = code
    },
    stop: () => new Promise<void>(resolve => listener.close(() => resolve())),
  }
}
